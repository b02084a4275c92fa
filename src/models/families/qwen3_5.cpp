// Qwen3.5 and later, dense or with experts: a hybrid whose delta layers have separate projections
// for q, k and v, for the gate, and for the two parameters of each head.
#include "models/families/families.h"
#include "models/families/qwen_hybrid.h"

namespace octavo {

DecoderPlan plan_qwen3_5(const Config& config) { return plan_qwen_hybrid(config, "qwen3_5"); }

}  // namespace octavo
