#include "models/gguf_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "models/families/families.h"
#include "models/format/printable.h"
#include "models/gguf_stop_tokens.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// Add one together with a test against an oracle (tests/e2e/test_logits.py, test_gguf_experts.py).
constexpr auto kArchitectures =
    std::to_array<std::string_view>({"llama", "qwen2", "qwen3", "qwen3moe", "smollm3"});

// GGUF key after "<architecture>." and the corresponding Hugging Face name.
constexpr auto kIntegerKeys = std::to_array<std::pair<const char*, const char*>>({
    {"block_count", "num_hidden_layers"},
    {"embedding_length", "hidden_size"},
    {"feed_forward_length", "intermediate_size"},
    {"attention.head_count", "num_attention_heads"},
    {"attention.head_count_kv", "num_key_value_heads"},
    {"attention.key_length", "head_dim"},
    {"context_length", "max_position_embeddings"},
    {"attention.sliding_window", "sliding_window"},
    {"expert_count", "num_experts"},
    {"expert_used_count", "num_experts_per_tok"},
    {"expert_feed_forward_length", "moe_intermediate_size"},
});

// Parts of tensor names, Hugging Face's first.
constexpr auto kNameParts = std::to_array<std::pair<std::string_view, std::string_view>>({
    {"model.embed_tokens.", "token_embd."},
    {"model.norm.", "output_norm."},
    {"lm_head.", "output."},
    {"input_layernorm.", "attn_norm."},
    {"post_attention_layernorm.", "ffn_norm."},
    {"self_attn.q_proj.", "attn_q."},
    {"self_attn.k_proj.", "attn_k."},
    {"self_attn.v_proj.", "attn_v."},
    {"self_attn.o_proj.", "attn_output."},
    {"self_attn.q_norm.", "attn_q_norm."},
    {"self_attn.k_norm.", "attn_k_norm."},
    {"mlp.gate_proj.", "ffn_gate."},
    {"mlp.up_proj.", "ffn_up."},
    {"mlp.down_proj.", "ffn_down."},
    {"mlp.gate.", "ffn_gate_inp."},
    {"mlp.switch_mlp.gate_proj.", "ffn_gate_exps."},
    {"mlp.switch_mlp.up_proj.", "ffn_up_exps."},
    {"mlp.switch_mlp.down_proj.", "ffn_down_exps."},
    {"block_sparse_moe.gate.", "ffn_gate_inp."},
    {"block_sparse_moe.switch_mlp.gate_proj.", "ffn_gate_exps."},
    {"block_sparse_moe.switch_mlp.up_proj.", "ffn_up_exps."},
    {"block_sparse_moe.switch_mlp.down_proj.", "ffn_down_exps."},
});

// rope_freqs.weight: divisors of the frequencies (llama.cpp's form of llama3 scaling).
Json rope_factors(const TensorView& tensor) {
  if (tensor.type != TensorType::F32) throw SetupError("rope_freqs.weight: expected F32");
  std::vector<float> factors(tensor.bytes.size() / sizeof(float));
  std::copy_n(tensor.bytes.data(), tensor.bytes.size(),
              reinterpret_cast<std::byte*>(factors.data()));
  return {{"rope_type", "factors"}, {"factors", factors}};
}

Json rope_scaling(const Checkpoint& checkpoint, const std::string& prefix) {
  if (const TensorView* factors = checkpoint.find("rope_freqs.weight"))
    return rope_factors(*factors);
  const Gguf& gguf = *checkpoint.gguf();
  const auto type = gguf.find_string(prefix + "rope.scaling.type");
  if (!type || *type == "none") return nullptr;
  Json scaling = {{"rope_type", *type}};
  if (const auto factor = gguf.find_f32(prefix + "rope.scaling.factor"))
    scaling["factor"] = *factor;
  if (const auto original = gguf.find_u32(prefix + "rope.scaling.original_context_length")) {
    scaling["original_max_position_embeddings"] = *original;
  }
  return scaling;
}

}  // namespace

void check_gguf_architecture(const Gguf& gguf) {
  const std::string architecture(gguf.get_string("general.architecture"));
  if (std::ranges::find(kArchitectures, architecture) != kArchitectures.end()) return;
  std::string family = architecture;  // llama.cpp writes "gpt-oss"
  std::ranges::replace(family, '-', '_');
  const auto families = known_model_types();
  const bool known = std::ranges::find(families, family) != families.end();
  throw SetupError(
      fmt::format("{}: GGUF architecture \"{}\" is not supported; supported are {}. {}",
                  gguf.file_name(), printable(architecture), fmt::join(kArchitectures, ", "),
                  known ? "Use a safetensors checkpoint of this model, which octavo reads."
                        : "docs/models.md lists the models that octavo reads as safetensors."));
}

Config config_from_gguf(const Checkpoint& checkpoint) {
  const Gguf& gguf = *checkpoint.gguf();
  const std::string architecture(gguf.get_string("general.architecture"));
  const std::string prefix = architecture + ".";
  Json config = {{"model_type", architecture}};
  for (const auto& [key, name] : kIntegerKeys) {
    if (const auto value = gguf.find_u32(prefix + key)) config[name] = *value;
  }
  if (const auto eps = gguf.find_f32(prefix + "attention.layer_norm_rms_epsilon")) {
    config["rms_norm_eps"] = *eps;
  }
  if (const auto base = gguf.find_f32(prefix + "rope.freq_base")) config["rope_theta"] = *base;
  if (Json scaling = rope_scaling(checkpoint, prefix); !scaling.is_null())
    config["rope_scaling"] = scaling;

  const TensorView& embeddings = checkpoint.at("token_embd.weight");
  if (embeddings.shape.size() == 2) config["vocab_size"] = embeddings.shape[0];
  config["tie_word_embeddings"] = checkpoint.find("output.weight") == nullptr;
  config["attention_bias"] = checkpoint.find("blk.0.attn_q.bias") != nullptr;
  config["mlp_bias"] = checkpoint.find("blk.0.ffn_gate.bias") != nullptr;
  config["eos_token_id"] = gguf_stop_tokens(gguf);
  // llama.cpp converts Mistral and Mixtral as llama; the window and the experts tell them apart.
  if (architecture == "llama" && config.contains("sliding_window"))
    config["model_type"] = "mistral";
  if (architecture == "llama" && config.value("num_experts", 0) > 0) {
    config["model_type"] = "mixtral";
    config["num_local_experts"] = config["num_experts"];
  }
  if (architecture == "qwen3moe") {
    config["model_type"] = "qwen3_moe";
    config["norm_topk_prob"] = true;  // always true, but not in the file
  }
  return {std::move(config), gguf.file_name()};
}

std::string gguf_tensor_name(std::string_view name) {
  std::string prefix;
  if (constexpr std::string_view kLayers = "model.layers."; name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    const size_t dot = name.find('.');
    prefix = fmt::format("blk.{}.", name.substr(0, dot));
    name.remove_prefix(std::min(name.size(), dot + 1));
  }
  for (const auto& [ours, theirs] : kNameParts) {
    if (name.starts_with(ours))
      return fmt::format("{}{}{}", prefix, theirs, name.substr(ours.size()));
  }
  return prefix + std::string(name);
}

bool gguf_permutes_rope(const Checkpoint& checkpoint) {
  const Gguf* gguf = checkpoint.gguf();
  if (gguf == nullptr) return false;
  const std::string_view architecture = gguf->get_string("general.architecture");
  return architecture == "llama" || architecture == "smollm3";
}

}  // namespace octavo
