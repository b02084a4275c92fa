// experts.h - loads the experts of a layer from any of the supported tensor forms.
#pragma once

#include <string>

#include "kernels/expert_mlp.h"
#include "models/plans/moe_plan.h"
#include "models/weight_source.h"

namespace octavo {

// `prefix`: the feed-forward's name, "model.layers.3.mlp".
ExpertMlp load_experts(const MoePlan& plan, int hidden, const std::string& prefix,
                       WeightSource& source);

}  // namespace octavo
