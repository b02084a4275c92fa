// engine.h - a loaded model that turns token ids into token ids, for many at once. Shows no MLX.
// Its own thread owns every MLX call; the functions here may be called from any.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/cache_plan.h"
#include "cache/memory_plan.h"
#include "engine/speculative_config.h"
#include "kernels/runtime/device.h"
#include "models/find_pooling.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"
#include "scheduler/engine_client.h"
#include "scheduler/scheduler.h"

namespace octavo {

// Where prefix pages are kept behind the memory.
struct PrefixDiskOptions {
  std::string path;         // --prefix-disk
  uint64_t bytes = 0;       // --prefix-disk-size
  std::string fingerprint;  // of the model's files and of this build
};

struct EngineOptions {
  DeviceChoice device = DeviceChoice::kAuto;  // --device
  std::optional<DType> dtype = {};            // --dtype; default: the checkpoint's own
  KvFormat kv_format = KvFormat::kPlain;      // --kv-cache-dtype
  int block_tokens = 32;                      // --block-size
  std::optional<int> max_model_len = {};      // --max-model-len
  std::optional<uint64_t> kv_bytes = {};      // --kv-memory
  double memory_fraction = 0.9;               // --memory-fraction
  std::optional<uint64_t> wired_bytes = {};   // --wired-limit; default: nothing is wired
  int max_num_seqs = 64;                      // --max-num-seqs: sequences of the largest step
  int max_num_batched_tokens = 512;           // --max-num-batched-tokens: rows of the largest step
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;  // --scheduling-policy
  bool enable_prefix_caching = true;                             // --enable-prefix-caching
  SpeculativeConfig speculation = {};                            // --speculative-config
  std::optional<PrefixDiskOptions> prefix_disk = {};
  PoolingOptions pooling = {};  // --runner, --pooler-config, --hf-overrides
  int max_open_requests = 4096;
  bool touch_pages = true;             // at start-up; a single answer does without
  bool speculate_at_any_cost = false;  // for tests: drafts need not be worth their time
  // For tests: true makes the step fail on the device.
  std::function<bool(const Batch&)> fails = nullptr;
};

// describe_model as the options ask. Throws SetupError.
ModelDescription describe_model(const Checkpoint& checkpoint, const EngineOptions& options);
// The two plans, before anything is loaded; memory on the device in use. Both throw SetupError
// naming the flag to change.
CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options);
MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options);

// How the engine will speculate: as asked, or not at all where the model cannot and nobody asked.
// Throws SetupError when what was asked for cannot be had.
SpeculativeConfig plan_speculation(const ModelDescription& model, const EngineOptions& options);

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
