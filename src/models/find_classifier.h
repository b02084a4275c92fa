// find_classifier.h - finds whether a checkpoint scores texts, and with which layers. No MLX.
#pragma once

#include <optional>

#include "kernels/types/pooling_plan.h"
#include "models/config.h"
#include "models/decoder_plan.h"

namespace octavo {

// How a model that scores pools: kind, labels, pair_prompt, and whether scores pass through a sigmoid or
// a softmax (PoolingPlan::normalize). Nullopt if the model does not score. `overrides`: --hf-overrides.
std::optional<PoolingPlan> find_classifier(const Checkpoint& checkpoint, const Config& config,
                                           const Config& overrides);

// The layers after pooling, for a plan that has the names of the checkpoint. `pooling`: of
// find_classifier().
ScoreHeadPlan plan_score_head(const Checkpoint& checkpoint, const Config& config,
                              const DecoderPlan& plan, const PoolingPlan& pooling);

}  // namespace octavo
