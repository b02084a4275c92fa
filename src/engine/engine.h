// engine.h - a loaded model that serves many requests at once, in token ids. Shows no MLX. All MLX
// calls run on its own thread; these functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/sha256.h"
#include "cache/memory_plan.h"
#include "engine/engine_options.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"
#include "scheduler/engine_client.h"

namespace octavo {

class Engine : public EngineClient {
 public:
  // Called on the engine thread with the file bytes read so far and the total.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;

  // Selects the device, plans memory, loads the model and starts the loop. Throws SetupError if the
  // device is not available, the model does not fit, or a file is damaged.
  Engine(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress);
  // Ends every open request.
  ~Engine() override;

  const ModelDescription& model() const;
  const MemoryPlan& memory() const;
  const SpeculativeConfig& speculation() const;
  uint64_t weights_bytes() const;  // resident memory of the weights
  // Of the files of --merge-adapter; unset without one.
  const std::optional<Sha256Digest>& merged_adapter() const;
  // Tokens of the largest image; 0 if the model takes no images, and images_refused() says why.
  int max_image_tokens() const;
  const std::string& images_refused() const;
  std::shared_ptr<const ScoreHead> score_head() const;  // null: the model does not score texts
  int max_whole_prompt() const;                         // RequestLimits::max_whole_prompt
  // Reads a LoRA adapter for Request::adapter. Throws SetupError; see AdapterLoader.
  std::shared_ptr<const Adapter> load_adapter(const std::string& name, const std::string& folder,
                                              bool replaces = false);
  // The part and the memory of each rank, for printing; empty without a cluster.
  std::string ranks_table() const;
  DiskTier* disk_tier() const;       // null without --prefix-disk
  uint64_t step_peak_bytes() const;  // peak memory of MLX for a step so far

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
