// BERT, and the models made of it: BGE, E5, GTE, MiniLM.
#include "models/families/encoder_like.h"
#include "models/families/families.h"

namespace octavo {

DecoderPlan plan_bert(const Config& config) {
  // Sizes of a pooler that no checkpoint has.
  config.disregard({"directionality", "pooler_fc_size", "pooler_num_attention_heads",
                    "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type"});
  return plan_bert_like(config, "bert", "bert");
}

}  // namespace octavo
