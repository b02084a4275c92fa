#include "models/find_classifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/families/families.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kClassifier = "ForSequenceClassification";
constexpr int kMostLabels = 4096;
constexpr const char* kGgufOutput = "cls.output";

bool is_classifier(const Config& config) {
  const Json* names = config.find("architectures");
  return names != nullptr && names->is_array() && std::ranges::any_of(*names, [](const Json& name) {
           return name.is_string() && name.get_ref<const std::string&>().ends_with(kClassifier);
         });
}

// As in transformers: two without any key.
int labels_of(const Config& config) {
  constexpr int kUsualLabels = 2;
  const auto names = config.object("id2label");
  const int named = names ? static_cast<int>(names->json().size()) : kUsualLabels;
  if (named < 1 || named > kMostLabels)
    config.fail("id2label",
                fmt::format("has {} labels; 1 to {} are supported", named, kMostLabels));
  return config.has("num_labels") ? config.integer("num_labels", 1, kMostLabels) : named;
}

// sentence-transformers' name of the last activation, with torch's path.
bool passes_logits(const Config& config) {
  constexpr const char* kOldKey = "sbert_ce_default_activation_function";
  constexpr const char* kKey = "activation_fn";
  const auto own = config.object("sentence_transformers");
  const bool is_own = own && own->has(kKey);
  const std::string name = is_own ? own->text(kKey) : config.text_or(kOldKey, "");
  if (name.ends_with(".Identity")) return true;
  if (name.empty() || name.ends_with(".Sigmoid")) return false;
  (is_own ? *own : config)
      .fail(is_own ? kKey : kOldKey,
            fmt::format("is \"{}\"; supported are Sigmoid and Identity", name));
}

Pooling classifier_pooling(const Config& config) {
  const std::string type = config.text("model_type");
  if (!is_encoder_type(type)) return Pooling::kLast;
  if (type != "modernbert") return Pooling::kFirst;
  const std::string kind = config.text_or("classifier_pooling", "cls");
  if (kind == "mean") return Pooling::kMean;
  if (kind != "cls")
    config.fail("classifier_pooling", fmt::format("is \"{}\"; supported are cls and mean", kind));
  return Pooling::kFirst;
}

// A GGUF file has its own keys for what these change.
void refuse_reranker_flags(const Config& overrides) {
  for (const char* key : {"architectures", "classifier_from_token", "is_original_qwen3_reranker"}) {
    if (overrides.has(key))
      overrides.fail(
          key,
          "has no effect on a GGUF file; use a file whose pooling_type is 4 (rank), or a "
          "safetensors checkpoint of this model");
  }
}

// vLLM's flags for the published Qwen3-Reranker, which is stored as a model that generates.
void check_original_reranker(const Config& config, const Config& overrides) {
  if (overrides.texts("classifier_from_token") != std::vector<std::string>{"no", "yes"})
    overrides.fail("classifier_from_token", R"(must be ["no", "yes"]; others are not supported)");
  if (!overrides.boolean_or("is_original_qwen3_reranker", false))
    overrides.fail("is_original_qwen3_reranker",
                   "must be true with classifier_from_token; other models are not supported");
  if (const std::string type = config.text("model_type"); type != "qwen3")
    overrides.fail("is_original_qwen3_reranker",
                   fmt::format("is true, but the checkpoint's model_type is \"{}\"", type));
}

std::string architecture_key(const Gguf& gguf, const char* key) {
  return fmt::format("{}.{}", gguf.get_string("general.architecture"), key);
}

// llama.cpp's pooling type 4: the first token's row of an encoder, or the last one's.
std::optional<PoolingPlan> from_gguf_file(const Checkpoint& checkpoint, const Config& config) {
  constexpr uint32_t kRank = 4;
  const Gguf& gguf = *checkpoint.gguf();
  if (gguf.find_u32(architecture_key(gguf, "pooling_type")).value_or(0) != kRank)
    return std::nullopt;
  const TensorView* output = checkpoint.find(fmt::format("{}.weight", kGgufOutput));
  if (output == nullptr) {
    throw SetupError(fmt::format(
        "{}: pooling_type is 4 (rank), but there is no tensor \"{}.weight\", which the head of a "
        "supported reranker has; use a safetensors checkpoint of this model",
        gguf.file_name(), kGgufOutput));
  }
  PoolingPlan plan{.kind = classifier_pooling(config)};
  // One row may be stored as a vector.
  const int64_t rows = output->shape.size() == 1 ? 1 : output->shape.front();
  if (rows < 1 || rows > kMostLabels)
    throw SetupError(fmt::format("{}: tensor \"{}.weight\" has {} rows; 1 to {} are supported",
                                 gguf.file_name(), kGgufOutput, rows, kMostLabels));
  plan.labels = static_cast<int>(rows);
  if (plan.kind != Pooling::kLast) return plan;
  const auto labels = gguf.find_strings(architecture_key(gguf, "classifier.output_labels"));
  if (labels != std::vector<std::string_view>{"yes", "no"}) {
    throw SetupError(fmt::format(
        "{}: the labels of this reranker are not \"yes\" and \"no\", as those of Qwen3-Reranker; "
        "other rerankers of this architecture are not supported as GGUF",
        gguf.file_name()));
  }
  plan.labels = 1;
  plan.pair_prompt = PairPrompt::kQwen3Reranker;
  return plan;
}

int token_id(const Checkpoint& checkpoint, const char* token) {
  const auto path = checkpoint.folder() / "tokenizer.json";
  const Json file = read_json(path);
  const auto model = file.find("model");
  if (model != file.end() && model->is_object()) {
    const auto vocab = model->find("vocab");
    if (vocab != model->end() && vocab->is_object()) {
      const auto id = vocab->find(token);
      if (id != vocab->end() && id->is_number_integer()) return id->get<int>();
    }
  }
  throw SetupError(fmt::format("{}: the vocabulary has no token \"{}\", which Qwen3-Reranker has",
                               path.string(), token));
}

// The difference of the logits of "yes" and "no".
ScoreHeadPlan plan_reranker_head(const Checkpoint& checkpoint, const DecoderPlan& plan) {
  if (checkpoint.gguf() != nullptr) return {.out = kGgufOutput, .rows = {0, 1}, .out_rows = 2};
  ScoreHeadPlan head{.out = plan.tied_embeddings ? plan.tensor("embed_tokens") : plan.head_name,
                     .rows = {token_id(checkpoint, "yes"), token_id(checkpoint, "no")},
                     .out_rows = plan.vocab};
  for (const int id : head.rows) {
    if (id < 0 || id >= plan.vocab)
      throw SetupError(fmt::format(
          "tokenizer.json: token {} is outside the model's vocabulary of {}", id, plan.vocab));
  }
  return head;
}

ScoreActivation head_activation(const Config& config) {
  constexpr auto kKnown = std::to_array<std::pair<const char*, ScoreActivation>>({
      {"gelu", ScoreActivation::kGelu},
      {"tanh", ScoreActivation::kTanh},
      {"relu", ScoreActivation::kRelu},
      {"silu", ScoreActivation::kSilu},
  });
  const char* key = "classifier_activation";
  const std::string asked = config.text_or(key, "gelu");
  for (const auto& [name, kind] : kKnown)
    if (asked == name) return kind;
  config.fail(key, fmt::format("is \"{}\"; supported are gelu, tanh, relu and silu", asked));
}

ScoreHeadPlan plan_modernbert_head(const Config& config, const DecoderPlan& plan) {
  return {.dense = "head.dense",
          .dense_bias = config.boolean_or("classifier_bias", false),
          .activation = head_activation(config),
          .norm = "head.norm",
          .norm_bias = plan.norm_bias,
          .norm_eps = plan.norm_eps,
          .out = "classifier",
          .out_bias = true};
}

ScoreHeadPlan plan_tanh_head(std::string dense, const char* out) {
  return {.dense = std::move(dense),
          .dense_bias = true,
          .activation = ScoreActivation::kTanh,
          .out = out,
          .out_bias = true};
}

ScoreHeadPlan plan_gguf_head(const Checkpoint& checkpoint) {
  ScoreHeadPlan head{.out = kGgufOutput,
                     .out_bias = checkpoint.find(fmt::format("{}.bias", kGgufOutput)) != nullptr};
  if (checkpoint.find("cls.weight") == nullptr) return head;
  head.dense = "cls";
  head.dense_bias = checkpoint.find("cls.bias") != nullptr;
  head.activation = ScoreActivation::kTanh;
  return head;
}

ScoreHeadPlan plan_head(const Checkpoint& checkpoint, const Config& config,
                        const DecoderPlan& plan) {
  if (checkpoint.gguf() != nullptr) return plan_gguf_head(checkpoint);
  if (plan.family == "bert") return plan_tanh_head(plan.tensor("pooler.dense"), "classifier");
  if (plan.family == "roberta" || plan.family == "xlm-roberta")
    return plan_tanh_head("classifier.dense", "classifier.out_proj");
  if (plan.family == "modernbert") return plan_modernbert_head(config, plan);
  if (!plan.encoder) return {.out = "score"};
  throw SetupError(fmt::format("{}: models of type {} that score texts are not supported",
                               config.origin(), plan.family));
}

}  // namespace

std::optional<PoolingPlan> find_classifier(const Checkpoint& checkpoint, const Config& config,
                                           const Config& overrides) {
  if (checkpoint.gguf() != nullptr) {
    refuse_reranker_flags(overrides);
    return from_gguf_file(checkpoint, config);
  }
  const Config& named = overrides.has("architectures") ? overrides : config;
  const bool by_tokens = overrides.has("classifier_from_token") ||
                         overrides.boolean_or("is_original_qwen3_reranker", false);
  if (by_tokens) check_original_reranker(config, overrides);
  if (!is_classifier(named) && !by_tokens) return std::nullopt;
  PoolingPlan plan{.kind = classifier_pooling(config)};
  plan.normalize = !passes_logits(config);
  plan.labels = by_tokens ? 1 : labels_of(config);
  if (by_tokens) plan.pair_prompt = PairPrompt::kQwen3Reranker;
  return plan;
}

ScoreHeadPlan plan_score_head(const Checkpoint& checkpoint, const Config& config,
                              const DecoderPlan& plan, const PoolingPlan& pooling) {
  ScoreHeadPlan head = pooling.pair_prompt == PairPrompt::kQwen3Reranker
                           ? plan_reranker_head(checkpoint, plan)
                           : plan_head(checkpoint, config, plan);
  head.labels = pooling.labels;
  return head;
}

}  // namespace octavo
