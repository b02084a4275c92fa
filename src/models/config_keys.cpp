#include "models/config_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "models/families/families.h"
#include "models/format/printable.h"
#include "models/transformers_defaults.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

// Keys that cannot change an answer, by reason.
constexpr auto kWithoutEffect = std::to_array<std::string_view>({
    // Where the checkpoint comes from and how it is stored.
    "model_type",
    "architectures",
    "auto_map",
    "name_or_path",
    "transformers_version",
    "transformers.js_config",
    "dtype",
    "torch_dtype",
    "use_bfloat16",
    "model_name",
    "unsloth_fixed",
    "unsloth_version",
    "is_llama_config",
    // Read by other parts of Octavo.
    "quantization",
    "quantization_config",
    "is_matryoshka",
    "sentence_transformers",
    "sbert_ce_default_activation_function",
    "matryoshka_dimensions",
    // Only for training.
    "initializer_range",
    "attention_dropout",
    "embd_pdrop",
    "resid_pdrop",
    "hidden_dropout",
    "classifier_dropout",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "aux_loss_alpha",
    "seq_aux",
    "gradient_checkpointing",
    "block_mlp_init_scale",
    "block_out_init_scale",
    "block_use_xavier_init",
    "conv_use_xavier_init",
    "init_method",
    "rescale_prenorm_residual",
    "time_step_floor",
    "time_step_max",
    "time_step_min",
    // How transformers computes, and what it returns besides the logits.
    "use_cache",
    "cache_implementation",
    "attn_implementation",
    "experts_implementation",
    "chunk_size_feed_forward",
    "chunk_size",
    "mamba_chunk_size",
    "use_mamba_kernels",
    "num_logits_to_keep",
    "moe_shared_expert_overlap",
    "pretraining_tp",
    "ep_size",
    "torchscript",
    "return_dict",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "output_past",
    "tie_last_hidden_states",
    // Tokens and text: the tokenizer's files decide.
    "tokenizer_class",
    "prefix",
    // Heads of classifiers, and encoders with decoders, which the families are not.
    "id2label",
    "label2id",
    "num_labels",
    "problem_type",
    "finetuning_task",
    "pruned_heads",
    "task_specific_params",
    "is_decoder",
    "cross_attention_hidden_size",
    "tie_encoder_decoder",
    // Multi-token prediction layers, which are not loaded.
    "num_nextn_predict_layers",
    "num_mtp_layers",
    "mtp_num_hidden_layers",
    "mtp_use_dedicated_embeddings",
    "mtp_layers_block_type",
    "mtp_hybrid_override_pattern",
    // Images and sound.
    "vision_config",
    "audio_config",
    "mm_tokens_per_image",
    "projector_hidden_act",
    "vision_feature_layer",
    "multimodal_projector_bias",
    "spatial_merge_size",
    "vision_soft_tokens_per_image",
    "language_model_only",
    // Parameters of generation: requests and generation_config.json decide, as in transformers.
    "max_length",
    "max_new_tokens",
    "min_length",
    "do_sample",
    "early_stopping",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "temperature",
    "top_k",
    "top_p",
    "typical_p",
    "repetition_penalty",
    "length_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "bad_words_ids",
    "num_return_sequences",
    "output_scores",
    "return_dict_in_generate",
    "remove_invalid_values",
    "exponential_decay_length_penalty",
    "suppress_tokens",
    "begin_suppress_tokens",
    // Read where it has an effect: with longrope, which Phi-3 does not always use.
    "original_max_position_embeddings",
    // The context before yarn, which rope_scaling repeats.
    "initial_context_length",
    // Gemma has hidden_activation instead; the others read hidden_act.
    "hidden_act",
});

// Keys inside rope_parameters and rope_scaling.
constexpr auto kRopeWithoutEffect = std::to_array<std::string_view>({
    "type",
    "mrope_interleaved",  // true of every model of the family
    "max_position_embeddings",
});

struct KeyValue {
  const char* key;
  const char* value;  // JSON
};

// Values at which a key that transformers does not know has no effect.
constexpr auto kUsual = std::to_array<KeyValue>({
    {"attention_bias", "false"},
    {"mlp_bias", "false"},
    {"lm_head_bias", "false"},
    {"add_cross_attention", "false"},
    {"use_bidirectional_attention", "false"},
    {"use_sliding_window", "false"},
    {"use_mrope", "false"},
    {"rope_interleaved", "false"},
    {"full_attn_mod", "1"},
    {"interpolate_factor", "1"},
    {"block_use_swiglu", "true"},
    {"use_pos_enc", "true"},
    {"normalization_function", "\"rmsnorm\""},
});

// Keys that transformers reads for every family, although no class lists them.
constexpr auto kOfEveryFamily = std::to_array<KeyValue>({
    {"is_causal", "true"},
    {"partial_rotary_factor", "1"},
    {"rope_scaling", "null"},
    {"rope_theta", "null"},
});

// Keys that repeat another one under a name that transformers does not know.
constexpr auto kCopies = std::to_array<std::pair<const char*, const char*>>({
    {"experts_per_token", "num_experts_per_tok"},
    {"block_dim", "hidden_size"},
    {"conv_dim", "hidden_size"},
    {"conv_dim_out", "hidden_size"},
    {"num_heads", "num_attention_heads"},
    {"block_norm_eps", "norm_eps"},
    {"theta", "rope_theta"},
});

bool without_effect(std::string_view key) {
  // transformers' private keys, and ids of special tokens, which the tokenizer's files repeat.
  if (key.starts_with("_") || key.ends_with("_token_id") || key.ends_with("_token_index"))
    return true;
  return std::ranges::find(kWithoutEffect, key) != kWithoutEffect.end();
}

bool is_empty(const Json& value) {
  return value.is_null() || (value.is_structured() && value.empty());
}

std::string shown(const Json& value) {
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Keys of the model's class and, for a multimodal model, of the class of its text part.
Json family_defaults(const Config& config) {
  Json defaults = transformers_defaults(config.text("model_type"));
  defaults.update(transformers_defaults(config.text_type()));
  return defaults;
}

Json family_aliases(const Config& config) {
  Json aliases = transformers_aliases(config.text("model_type"));
  aliases.update(transformers_aliases(config.text_type()));
  return aliases;
}

Config with_family_defaults(const Config& config) {
  Json defaults = family_defaults(config);
  const Json aliases = family_aliases(config);
  for (const auto& [alias, key] : aliases.items()) {
    if (config.has(alias)) defaults.erase(key.get<std::string>());
  }
  return config.with_defaults(defaults);
}

class KeyCheck {
 public:
  explicit KeyCheck(const Config& config)
      : config_(config),
        known_(transformers_defaults("*")),
        rope_keys_(transformers_defaults("rope_parameters")) {
    for (const auto& [key, value] : kOfEveryFamily) known_[key] = Json::parse(value);
    for (const auto& [key, value] : kUsual) usual_[key] = Json::parse(value);
    for (const auto& [copy, key] : kCopies) aliases_[copy] = key;
    known_.update(family_defaults(config));
    aliases_.update(family_aliases(config));
  }

  void run() {
    for (const auto& [key, value] : config_.json().items()) {
      if (is_empty(value)) continue;
      if (key == "rope_parameters" || key == "rope_scaling") check_rope(key, value);
      if (!config_.was_read(key) && !without_effect(key)) check(key, value);
    }
  }

  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<std::string>& unknown() const { return unknown_; }

 private:
  void check(const std::string& key, const Json& value) {
    if (aliases_.contains(key) && !known_.contains(key)) return check_alias(key, value);
    if (!known_.contains(key)) {
      if (!usual_.contains(key) || value != usual_[key]) unknown_.push_back(key);
    } else if (const Json& expected = known_[key]; value != expected) {
      problems_.push_back(fmt::format(
          "\"{}\" is {}, but only transformers' default {} is supported for this family",
          printable(key), shown(value), shown(expected)));
    }
  }

  void check_alias(const std::string& alias, const Json& value) {
    const auto key = aliases_[alias].get<std::string>();
    const auto own = config_.json().find(key);
    if (own == config_.json().end()) {
      problems_.push_back(fmt::format("\"{}\" is {}; call it \"{}\", the name that octavo reads",
                                      alias, shown(value), key));
    } else if (*own != value) {
      problems_.push_back(fmt::format("\"{}\" is {}, but \"{}\", which must be equal, is {}", alias,
                                      shown(value), key, shown(*own)));
    }
  }

  // Which keys have an effect depends on the type, and the plan reads all of those.
  void check_rope(const std::string& path, const Json& rope) {
    if (!rope.is_object() || !config_.was_read(path)) return;
    for (const auto& [key, value] : rope.items()) {
      const std::string inner = path + "." + key;
      if (value.is_object()) {
        if (config_.was_read(inner)) {
          check_rope(inner, value);
        } else {
          problems_.push_back(fmt::format(
              "\"{}\" is an object, which is not supported for this family", printable(inner)));
        }
      } else if (!config_.was_read(inner) && !rope_keys_.contains(key) &&
                 std::ranges::find(kRopeWithoutEffect, key) == kRopeWithoutEffect.end()) {
        unknown_.push_back(inner);
      }
    }
  }

  const Config& config_;
  Json known_;  // key: default
  Json rope_keys_;
  Json usual_ = Json::object();    // key: value
  Json aliases_ = Json::object();  // alias: key
  std::vector<std::string> problems_;
  std::vector<std::string> unknown_;
};

// A few of them, since a file may have any number.
std::string listed(const std::vector<std::string>& items, const char* separator) {
  constexpr size_t kShown = 8;
  const size_t count = std::min(kShown, items.size());
  std::string text = fmt::format("{}", fmt::join(std::span(items).first(count), separator));
  if (items.size() > count) text += fmt::format("{}and {} more", separator, items.size() - count);
  return text;
}

}  // namespace

std::vector<std::string> check_config_keys(const Config& config) {
  KeyCheck check(config);
  check.run();
  if (!check.problems().empty()) {
    throw SetupError(fmt::format(
        "{}: {}. The answers of this model would be wrong; use another checkpoint of it, or see "
        "docs/adding-a-model.md to support the key.",
        config.origin(), listed(check.problems(), "; ")));
  }
  return check.unknown();
}

DecoderPlan plan_config_file(const Config& config, UnknownKeys unknown) {
  plan_model(config);  // names a required key that is missing, before the defaults hide it
  DecoderPlan plan = plan_model(with_family_defaults(config));
  std::vector<std::string> keys = check_config_keys(config);
  if (keys.empty()) return plan;
  for (std::string& key : keys) key = in_quotes(key);
  const std::string text = fmt::format("{}: neither octavo nor transformers knows {}",
                                       config.origin(), listed(keys, ", "));
  if (unknown == UnknownKeys::kRefuse)
    throw SetupError(text + "; leave out --strict-config to ignore them");
  spdlog::warn(
      "{}; ignored. If the model needs them, its answers are wrong; --strict-config refuses such "
      "files",
      text);
  return plan;
}

}  // namespace octavo
