// load_score_head.h - loads the layers that turn a pooled vector into scores. Engine thread only.
#pragma once

#include <memory>

#include "kernels/types/score_head.h"
#include "models/decoder_plan.h"
#include "models/weight_source.h"

namespace octavo {

// From weights of any format. Null if the source only checks. `hidden`: the width of the vector.
std::shared_ptr<const ScoreHead> load_score_head(const ScoreHeadPlan& plan, int hidden,
                                                 WeightSource& source);

}  // namespace octavo
