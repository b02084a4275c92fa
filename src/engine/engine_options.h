// engine_options.h - options of an engine, one field per flag. No MLX.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/speculative_config.h"
#include "engine/vision_options.h"
#include "kernels/runtime/device.h"
#include "models/config_keys.h"
#include "models/find_pooling.h"
#include "scheduler/scheduler.h"

namespace octavo {

// The disk tier of the prefix cache.
struct PrefixDiskOptions {
  std::string path;         // --prefix-disk
  uint64_t bytes = 0;       // --prefix-disk-size
  std::string fingerprint;  // of the model's files and this build
};

// LoRA adapters (--enable-lora).
struct AdapterOptions {
  int max_loras = 1;       // --max-loras: adapters that a step may use
  int max_lora_rank = 16;  // --max-lora-rank
  int max_cpu_loras = 1;   // --max-cpu-loras: adapters that may be loaded
  bool experts = false;    // --lora-experts: adapters may change the experts of a mixture
};

class Cluster;

struct EngineOptions {
  DeviceChoice device = DeviceChoice::kAuto;             // --device
  std::optional<DType> dtype = {};                       // --dtype; default: the checkpoint's own
  UnknownKeys unknown_config_keys = UnknownKeys::kWarn;  // --strict-config
  KvFormat kv_format = KvFormat::kPlain;                 // --kv-cache-dtype
  int block_tokens = 32;                                 // --block-size
  std::optional<int> max_model_len = {};                 // --max-model-len
  bool refuse_longer_context = false;         // than the model's own; tests use longer ones
  std::optional<int> model_context = {};      // max_position_embeddings of --hf-overrides
  std::optional<uint64_t> kv_bytes = {};      // --kv-memory
  double memory_fraction = 0.9;               // --memory-fraction
  std::optional<uint64_t> memory_limit = {};  // --memory-limit
  std::optional<uint64_t> wired_bytes = {};   // --wired-limit; default: none
  int max_num_seqs = 64;                      // --max-num-seqs: sequences of the largest step
  int max_num_batched_tokens = 512;           // --max-num-batched-tokens: rows of the largest step
  // The user chose it; see options_for().
  bool batched_tokens_given = false;
  SchedulingPolicy scheduling_policy = SchedulingPolicy::kFcfs;  // --scheduling-policy
  bool enable_prefix_caching = true;                             // --enable-prefix-caching
  bool prefix_caching_given = false;                             // the user chose it
  SpeculativeConfig speculation = {};                            // --speculative-config
  std::optional<PrefixDiskOptions> prefix_disk = {};
  std::optional<AdapterOptions> adapters = {};  // unset: LoRA is off
  PrefixObserver* prefix_observer = nullptr;    // --kv-events-config; must outlive the engine
  // --pipeline-parallel-size or --tensor-parallel-size: the other ranks, which have joined; must
  // outlive the engine. Null: one machine.
  Cluster* cluster = nullptr;
  bool tensor_parallel = false;    // the cluster divides outputs instead of layers
  std::string merge_adapter = {};  // --merge-adapter: a folder; empty: none
  VisionOptions vision = {};
  PoolingOptions pooling = {};  // --runner, --pooler-config, --hf-overrides
  int max_open_requests = 4096;
  bool serves_requests = false;        // plan memory for requests outside the engine
  bool touch_pages = true;             // at start-up; not needed for a single request
  bool speculate_at_any_cost = false;  // for tests: draft even if it does not pay off
  // For tests: return true to make the step fail on the device.
  std::function<bool(const Batch&)> fails = nullptr;
};

}  // namespace octavo
