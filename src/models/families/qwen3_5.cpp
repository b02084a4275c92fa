// Qwen3.5 and later, dense or with experts: a hybrid whose delta layers have a projection each for
// q, k and v, for their gate, and for the two numbers of each head.
#include "models/families/families.h"
#include "models/families/qwen_hybrid.h"

namespace octavo {

DecoderPlan plan_qwen3_5(const Config& config) { return plan_qwen_hybrid(config, "qwen3_5"); }

}  // namespace octavo
