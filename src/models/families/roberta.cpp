// RoBERTa and XLM-RoBERTa: BERT whose positions are counted from the row after that of padding.
#include <fmt/format.h>

#include "models/families/encoder_like.h"
#include "models/families/families.h"

namespace octavo {
namespace {

DecoderPlan plan_roberta_like(const Config& config, const char* family) {
  DecoderPlan plan = plan_bert_like(config, family, "roberta");
  EncoderPlan& encoder = *plan.encoder;
  encoder.first_position = config.integer_or("pad_token_id", 1, 0, 1 << 24) + 1;
  if (encoder.first_position >= encoder.position_rows) {
    config.fail("max_position_embeddings",
                fmt::format("is {}; positions begin at pad_token_id + 1, which is {}",
                            encoder.position_rows, encoder.first_position));
  }
  plan.max_context = encoder.position_rows - encoder.first_position;
  return plan;
}

}  // namespace

DecoderPlan plan_roberta(const Config& config) { return plan_roberta_like(config, "roberta"); }

DecoderPlan plan_xlm_roberta(const Config& config) {
  return plan_roberta_like(config, "xlm-roberta");
}

}  // namespace octavo
