// pooling_plan.h - how a checkpoint makes vectors of texts, and whether it is asked to. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/types/pooling_kind.h"
#include "models/config.h"

namespace octavo {

struct PoolingPlan {
  Pooling kind = Pooling::kLast;
  bool normalize = true;
  std::optional<int> dimensions = {};  // kept of a vector, unless a request says otherwise
  // The first numbers of a vector mean something by themselves, so that requests may ask for fewer.
  bool matryoshka = false;
  std::vector<int> matryoshka_dimensions = {};  // the only ones allowed; empty: any
  std::optional<int> max_tokens = {};           // of a text, where that is less than the context

  // "last token, normalised"
  std::string describe() const;
};

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
