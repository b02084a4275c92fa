// engine_client.h - the engine as those who ask it see it. No MLX. Any thread.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "scheduler/engine_stats.h"
#include "scheduler/request.h"
#include "scheduler/update.h"

namespace octavo {

// Called on the engine thread with every update of a request, the last one of each choice with its
// `finish`. Must neither block nor throw.
using UpdateSink = std::function<void(Update)>;

class EngineClient {
 public:
  virtual ~EngineClient() = default;

  // Throws RequestError: 400 for a request that cannot be served as asked, 429 when too many are
  // open, 503 when no more are taken.
  virtual RequestId submit(Request request, UpdateSink sink) = 0;
  // Ends the request, or one choice of it, within two steps; harmless when it has ended.
  virtual void abort(RequestId id, std::optional<int> only_choice = std::nullopt) = 0;
  virtual void reset_prefix_cache() = 0;
  // Takes no more requests.
  virtual void close() = 0;
  // Waits until every request has ended; false when `timeout` comes first.
  virtual bool wait_until_idle(std::chrono::milliseconds timeout) = 0;

  virtual EngineStats stats() const = 0;
  // When work last went on; an idle engine is always on time.
  virtual std::chrono::steady_clock::time_point heartbeat() const = 0;
};

}  // namespace octavo
