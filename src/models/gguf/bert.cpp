// BERT and Nomic BERT. XLM-RoBERTa is BERT here too: the converter leaves out the rows of positions
// before the first one that it uses.
#include "models/gguf/architectures.h"
#include "models/gguf/reader.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// A table of one row may be stored as a vector.
int64_t rows_of_table(const GgufReader& file, std::string_view tensor, const Json& config) {
  const int64_t rows = file.rows_of(tensor);
  return config.contains("hidden_size") && config["hidden_size"] == rows ? 1 : rows;
}

void finish_bert(GgufReader& file, Json& config) {
  config["type_vocab_size"] = rows_of_table(file, "token_types.weight", config);
  if (file.has_tensor("position_embd.weight"))
    config["max_position_embeddings"] = file.rows_of("position_embd.weight");
  config["hidden_act"] = "gelu";
  if (file.take("attention.causal") != Json(false))
    file.refuse("attention.causal", "is not false; it must be for an encoder");
}

GgufArchitecture bert_like() {
  return {.keys = {{"attention.layer_norm_epsilon", "layer_norm_eps"}},
          .unused_keys = {"classifier.output_labels"},  // find_classifier.cpp counts the rows
          .names = {{"model.embeddings.position_embeddings.", "position_embd."},
                    {"model.embeddings.token_type_embeddings.", "token_types."},
                    {"model.embeddings.LayerNorm.", "token_embd_norm."},
                    {"post_attention_layernorm.", "attn_output_norm."},
                    {"post_feedforward_layernorm.", "layer_output_norm."},
                    {"self_attn.qkv_proj.", "attn_qkv."}},
          .is_encoder = true,
          .adapt = finish_bert};
}

}  // namespace

GgufArchitecture gguf_bert() {
  GgufArchitecture architecture = bert_like();
  architecture.name = "bert";
  architecture.model_type = "bert";
  return architecture;
}

GgufArchitecture gguf_nomic_bert() {
  GgufArchitecture architecture = bert_like();
  architecture.name = "nomic-bert";
  architecture.model_type = "nomic_bert";
  return architecture;
}

}  // namespace octavo
