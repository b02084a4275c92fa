#include "models/stage_range.h"

#include "models/decoder_plan.h"

namespace octavo {

bool StageRange::draws(const DecoderPlan& plan) const {
  return last == static_cast<int>(plan.layers.size());
}

bool StageRange::has_embeddings(const DecoderPlan& plan) const {
  const bool tied_head = plan.tied_embeddings && !plan.head_name.empty();
  return embeds() || (draws(plan) && (tied_head || plan.mtp.has_value()));
}

StageRange whole_model(const DecoderPlan& plan) {
  return {0, static_cast<int>(plan.layers.size())};
}

}  // namespace octavo
