// engine.h - a loaded model that turns token ids into token ids, for many at once. Shows no MLX.
// Its own thread owns every MLX call; the functions here may be called from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/memory_plan.h"
#include "engine/engine_options.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"
#include "scheduler/engine_client.h"

namespace octavo {

class Engine : public EngineClient {
 public:
  // Called on the engine thread with the file bytes read so far and in all.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;

  // Takes the device, plans memory, loads, and starts the loop. Throws SetupError when there is no
  // such device, it does not fit or a file is damaged.
  Engine(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress);
  // Ends every open request.
  ~Engine() override;

  const ModelDescription& model() const;
  const MemoryPlan& memory() const;
  const SpeculativeConfig& speculation() const;
  uint64_t weights_bytes() const;    // resident, as loaded
  uint64_t step_peak_bytes() const;  // the most MLX has held for a step so far

  RequestId submit(Request request, UpdateSink sink) override;
  void abort(RequestId id, std::optional<int> only_choice = std::nullopt) override;
  void reset_prefix_cache() override;
  void close() override;
  bool wait_until_idle(std::chrono::milliseconds timeout) override;
  EngineStats stats() const override;
  std::chrono::steady_clock::time_point heartbeat() const override;

 private:
  struct Loaded;
  class Thread;
  std::unique_ptr<Thread> thread_;
};

}  // namespace octavo
