// engine_client.h - the interface of the engine to its callers. No MLX. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "scheduler/engine_stats.h"
#include "scheduler/request.h"
#include "scheduler/update.h"

namespace octavo {

// Called on the engine thread with every update of a request; the last update of each choice has
// `finish`. Must neither block nor throw.
using UpdateSink = std::function<void(Update)>;

class EngineClient {
 public:
  virtual ~EngineClient() = default;

  // Throws RequestError: 400 for an invalid request, 429 if too many are open, 503 after close().
  virtual RequestId submit(Request request, UpdateSink sink) = 0;
  // Ends the request, or one choice of it, within two steps. No effect if it has ended.
  virtual void abort(RequestId id, std::optional<int> only_choice = std::nullopt) = 0;
  virtual void reset_prefix_cache() = 0;
  // Rejects further requests.
  virtual void close() = 0;
  // Waits until every request has ended. False on timeout.
  virtual bool wait_until_idle(std::chrono::milliseconds timeout) = 0;

  virtual EngineStats stats() const = 0;
  // Time of the last progress; now, if the engine is idle.
  virtual std::chrono::steady_clock::time_point heartbeat() const = 0;
};

}  // namespace octavo
