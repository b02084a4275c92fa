// experts.h - loads the experts of a layer from any of the supported tensor forms, and runs them.
#pragma once

#include <string>

#include "kernels/expert_mlp.h"
#include "models/plans/moe_plan.h"
#include "models/rank_exchange.h"
#include "models/weight_source.h"

namespace octavo {

// `prefix`: the feed-forward's name, "model.layers.3.mlp".
ExpertMlp load_experts(const MoePlan& plan, int hidden, const std::string& prefix,
                       WeightSource& source);

// expert_mlp(), or with `ranks` the same from this rank's part of the experts, whose outputs are
// `intermediate` and x's columns on all ranks together. The rows of `options` are whole.
mx::array run_experts(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
                      int intermediate, const ExpertOptions& options, RankExchange* ranks);

}  // namespace octavo
