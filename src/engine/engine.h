// engine.h - a loaded model that turns token ids into token ids. Shows no MLX. One thread owns an
// engine: the one that loaded it makes every call.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "cache/cache_plan.h"
#include "cache/memory_plan.h"
#include "engine/request.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"

namespace octavo {

struct EngineOptions {
  std::optional<DType> dtype;             // --dtype; default: the checkpoint's own
  KvFormat kv_format = KvFormat::kPlain;  // --kv-cache-dtype
  int block_tokens = 32;                  // --block-size
  std::optional<int> max_model_len;       // --max-model-len
  std::optional<uint64_t> kv_bytes;       // --kv-memory
  double memory_fraction = 0.9;           // --memory-fraction
  int max_num_batched_tokens = 512;       // --max-num-batched-tokens: rows of the largest step
};

// The two plans, before anything is loaded. Both throw SetupError naming the flag to change.
CachePlan plan_engine_cache(const ModelDescription& model, const EngineOptions& options);
MemoryPlan plan_engine_memory(const ModelDescription& model, const EngineOptions& options);

class Engine {
 public:
  // Called with the file bytes read so far and in all.
  using Progress = std::function<void(uint64_t done, uint64_t total)>;
  // Called with each new token but a stop token; false ends the generation (FinishReason::kAbort).
  using OnToken = std::function<bool(TokenId)>;

  // Plans memory, then loads. Throws SetupError when it does not fit or a file is damaged.
  Engine(const Checkpoint& checkpoint, const EngineOptions& options, Progress progress);
  ~Engine();

  const ModelDescription& model() const;
  const MemoryPlan& memory() const;
  uint64_t weights_bytes() const;    // resident, as loaded
  uint64_t step_peak_bytes() const;  // the most MLX has held for a step so far

  // Runs one request to its end. K and V of the previous request are kept, and the part of this
  // prompt that starts like it is not computed again.
  Generation generate(const Request& request, const OnToken& on_token);

 private:
  struct Loaded;
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace octavo
