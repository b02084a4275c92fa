// find_pooling.h - how a checkpoint pools token rows into one vector, from its files and the flags.
// No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/types/pooling_plan.h"
#include "models/config.h"

namespace octavo {

// vLLM's --runner.
enum class RunnerKind : uint8_t {
  kAuto,  // kPooling when the checkpoint, or --pooler-config, says how to pool
  kGenerate,
  kPooling,
};

struct PoolingOptions {
  RunnerKind runner = RunnerKind::kGenerate;
  std::string pooler_config = {};  // --pooler-config: a JSON object, or empty
  std::string hf_overrides = {};   // --hf-overrides: the same
};

// What the files of sentence-transformers beside the weights say (modules.json), or a GGUF's
// pooling_type; nothing when they say nothing. Throws SetupError for a way to pool that there is no
// code for, unless `known` is taken in its place.
std::optional<PoolingPlan> find_pooling(const Checkpoint& checkpoint,
                                        std::optional<Pooling> known = {});

// How to pool as the flags ask, or nothing: tokens are drawn. Flags come before the checkpoint's
// own word, which comes before vLLM's default: the last token, normalised. Throws SetupError.
std::optional<PoolingPlan> plan_pooling(const Checkpoint& checkpoint,
                                        const PoolingOptions& options);

}  // namespace octavo
