#include "models/gguf/architectures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>

#include "base/error.h"
#include "models/families/families.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

constexpr auto kSharedNames = std::to_array<GgufName>({
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
    {"mlp.experts.gate_up_proj.", "ffn_gate_up_exps."},
    {"mlp.experts.down_proj.", "ffn_down_exps."},
});

const std::vector<GgufArchitecture>& all_architectures() {
  static const std::vector<GgufArchitecture> all = {
      gguf_bert(),           gguf_deepseek2(),     gguf_gemma2(),   gguf_gemma3(),
      gguf_gemma4(),         gguf_glm4(),          gguf_glm4moe(),  gguf_gpt_oss(),
      gguf_granite(),        gguf_granitehybrid(), gguf_lfm2(),     gguf_lfm2moe(),
      gguf_llama(),          gguf_minicpm3(),      gguf_mistral3(), gguf_nemotron_h(),
      gguf_nemotron_h_moe(), gguf_nomic_bert(),    gguf_olmo2(),    gguf_phi3(),
      gguf_qwen2(),          gguf_qwen3(),         gguf_qwen35(),   gguf_qwen35moe(),
      gguf_qwen3moe(),       gguf_qwen3next(),     gguf_qwen3vl(),  gguf_qwen3vlmoe(),
      gguf_smollm3(),
  };
  return all;
}

// The number in "blk.<number>.".
std::optional<size_t> layer_of(std::string_view name) {
  constexpr std::string_view kLayer = "blk.";
  if (!name.starts_with(kLayer)) return std::nullopt;
  name.remove_prefix(kLayer.size());
  size_t layer = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return layer;
}

}  // namespace

std::vector<std::string_view> gguf_architecture_names() {
  std::vector<std::string_view> names;
  for (const auto& architecture : all_architectures()) names.push_back(architecture.name);
  return names;
}

const GgufArchitecture& gguf_architecture(const Gguf& gguf) {
  return find_gguf_architecture(gguf.get_string("general.architecture"), gguf.file_name());
}

const GgufArchitecture& find_gguf_architecture(std::string_view name, std::string_view origin) {
  for (const auto& architecture : all_architectures())
    if (architecture.name == name) return architecture;
  std::string family(name);
  std::ranges::replace(family, '-', '_');
  const auto families = known_model_types();
  const bool known = std::ranges::find(families, family) != families.end();
  throw SetupError(
      fmt::format("{}: GGUF architecture \"{}\" is not supported; supported are {}. {}", origin,
                  printable(name), fmt::join(gguf_architecture_names(), ", "),
                  known ? "Use a safetensors checkpoint of this model, which octavo reads."
                        : "docs/models.md lists the models that octavo reads as safetensors."));
}

GgufTensor gguf_tensor(const GgufArchitecture& architecture, std::string_view name) {
  std::string prefix;
  if (constexpr std::string_view kLayers = "model.layers."; name.starts_with(kLayers)) {
    name.remove_prefix(kLayers.size());
    const size_t dot = name.find('.');
    prefix = fmt::format("blk.{}.", name.substr(0, dot));
    name.remove_prefix(dot == std::string_view::npos ? name.size() : dot + 1);
  }
  const auto search = [&](std::span<const GgufName> names) -> std::optional<GgufTensor> {
    for (const auto& [ours, theirs, values] : names) {
      if (name.starts_with(ours))
        return GgufTensor{fmt::format("{}{}{}", prefix, theirs, name.substr(ours.size())), values};
    }
    return std::nullopt;
  };
  if (auto own = search(architecture.names)) return *std::move(own);
  if (auto shared = search(kSharedNames)) return *std::move(shared);
  return {prefix + std::string(name)};
}

bool gguf_skips(const GgufArchitecture& architecture, std::string_view name, size_t layers) {
  const auto& parts = architecture.config_tensors;
  if (std::ranges::find(parts, name) != parts.end()) return true;
  const auto layer = layer_of(name);
  return architecture.has_mtp && layer && *layer >= layers;
}

}  // namespace octavo
