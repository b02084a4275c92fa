// find_pooling.h - finds how a checkpoint pools token rows into one vector, from its files and the
// flags. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "kernels/types/pooling_plan.h"
#include "models/config.h"

namespace octavo {

// vLLM's --runner.
enum class RunnerKind : uint8_t {
  kAuto,  // kPooling if the checkpoint or --pooler-config specifies pooling, or for an encoder
  kGenerate,
  kPooling,
};

struct PoolingOptions {
  RunnerKind runner = RunnerKind::kGenerate;
  std::string pooler_config = {};  // --pooler-config: a JSON object, or empty
  std::string hf_overrides = {};   // --hf-overrides: the same
};

// Reads sentence-transformers' modules.json next to the weights, or a GGUF's pooling_type. Nullopt
// if there is neither. Throws SetupError for an unsupported pooling type unless `known` overrides
// it.
std::optional<PoolingPlan> find_pooling(const Checkpoint& checkpoint,
                                        std::optional<Pooling> known = {});

// The pooling plan, or nullopt for a generating model. Flags override the checkpoint, which
// overrides vLLM's default: the last token, or the first one of an encoder, normalised. Throws
// SetupError.
std::optional<PoolingPlan> plan_pooling(const Checkpoint& checkpoint,
                                        const PoolingOptions& options);

}  // namespace octavo
