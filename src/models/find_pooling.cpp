#include "models/find_pooling.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "models/families/families.h"
#include "models/find_classifier.h"

namespace octavo {
namespace {

using Json = nlohmann::json;

constexpr const char* kOverride =
    R"(--pooler-config '{"pooling_type": "LAST"}', "MEAN" or "CLS" overrides it)";

// sentence-transformers' names: boolean keys, or the value of "pooling_mode".
constexpr std::array<std::pair<const char*, Pooling>, 6> kModes = {{
    {"pooling_mode_lasttoken", Pooling::kLast},
    {"lasttoken", Pooling::kLast},
    {"pooling_mode_mean_tokens", Pooling::kMean},
    {"mean", Pooling::kMean},
    {"pooling_mode_cls_token", Pooling::kFirst},
    {"cls", Pooling::kFirst},
}};

Pooling pooling_mode(const Config& config) {
  std::vector<std::string> asked;
  for (const auto& [key, value] : config.json().items()) {
    if (key.starts_with("pooling_mode_") && value == true) asked.push_back(key);
  }
  if (config.has("pooling_mode")) asked.push_back(config.text("pooling_mode"));
  if (asked.size() == 1) {
    for (const auto& [key, kind] : kModes) {
      if (asked.front() == key) return kind;
    }
  }
  throw SetupError(fmt::format(
      "{}: pools by {}; only the first token, the last one and the mean are supported. {}",
      config.origin(), fmt::join(asked, " and "), kOverride));
}

Pooling read_pooling(const std::filesystem::path& path) {
  const Config config(read_json(path), path.string());
  const Pooling kind = pooling_mode(config);
  // The tokens of an instruction cannot be distinguished from those of the text.
  if (kind == Pooling::kMean && !config.boolean_or("include_prompt", true))
    config.fail("include_prompt", fmt::format("is false, which is not supported. {}", kOverride));
  return kind;
}

// What sentence-transformers does after the model; only whether it normalises if the pooling type
// is already known.
PoolingPlan read_modules(const std::filesystem::path& file, const Json& modules, bool known) {
  std::optional<Pooling> kind;
  bool normalize = false;
  for (const Json& json : modules) {
    const Config module(json, file.string());
    const std::string type = module.text("type");
    if (type.ends_with(".Normalize")) {
      normalize = true;
    } else if (known || type.ends_with(".Transformer")) {
      continue;
    } else if (type.ends_with(".Pooling")) {
      kind = read_pooling(file.parent_path() / module.text("path") / "config.json");
    } else {
      module.fail("type", fmt::format("is {}, which is not supported. {}", type, kOverride));
    }
  }
  if (!kind && !known) throw SetupError(file.string() + ": lists no pooling module");
  return {.kind = kind.value_or(Pooling::kLast), .normalize = normalize};
}

std::optional<PoolingPlan> from_folder(const std::filesystem::path& folder, bool known) {
  const auto file = folder / "modules.json";
  if (!std::filesystem::exists(file)) return std::nullopt;
  const Json modules = read_json(file);
  if (!modules.is_array()) throw SetupError(file.string() + ": not a list of modules");
  return read_modules(file, modules, known);
}

// llama.cpp's numbers: 0 none, 1 mean, 2 the first token, 3 the last, 4 rank, which find_classifier()
// reads.
std::optional<PoolingPlan> from_gguf(const Gguf& gguf, bool known) {
  if (known) return std::nullopt;
  const auto type =
      gguf.find_u32(std::string(gguf.get_string("general.architecture")) + ".pooling_type");
  if (!type || *type == 0) return std::nullopt;
  constexpr std::array kTypes = {Pooling::kMean, Pooling::kFirst, Pooling::kLast};
  if (*type > kTypes.size())
    throw SetupError(
        fmt::format("pooling_type {} of the GGUF file is not supported; {}", *type, kOverride));
  return PoolingPlan{.kind = kTypes[*type - 1]};
}

bool lowers(const Json& normalizer) {
  if (!normalizer.is_object()) return false;
  const Json type = normalizer.value("type", Json());
  if (type == "Lowercase") return true;
  if (type == "BertNormalizer") return normalizer.value("lowercase", Json()) == true;
  const auto parts = normalizer.find("normalizers");
  return parts != normalizer.end() && parts->is_array() && std::ranges::any_of(*parts, lowers);
}

bool tokenizer_lowers(const std::filesystem::path& folder) {
  const auto path = folder / "tokenizer.json";
  if (!std::filesystem::exists(path)) return false;
  const Json tokenizer = read_json(path);
  return tokenizer.is_object() && lowers(tokenizer.value("normalizer", Json()));
}

// Tokenizer settings outside tokenizer.json.
void read_text_limits(const std::filesystem::path& folder, PoolingPlan& plan) {
  const auto path = folder / "sentence_bert_config.json";
  if (!std::filesystem::exists(path)) return;
  const Config config(read_json(path), path.string());
  if (config.boolean_or("do_lower_case", false) && !tokenizer_lowers(folder))
    config.fail(
        "do_lower_case",
        "is true, but the normalizer of tokenizer.json does not lower-case; octavo does not "
        "either");
  if (config.has("max_seq_length")) plan.max_tokens = config.integer("max_seq_length", 1, 1 << 28);
}

// Families of decoders attend to later tokens only in images.
void refuse_bidirectional(const Config& config) {
  if (!config.boolean_or("is_causal", true))
    config.fail("is_causal", "is false; only causal attention is supported");
  if (config.boolean_or("use_bidirectional_attention", false))
    config.fail("use_bidirectional_attention", "is true; only causal attention is supported");
}

void refuse_first_token(const PoolingPlan& plan, const Config& config) {
  if (plan.kind != Pooling::kFirst) return;
  throw SetupError(fmt::format(
      "{}: pools by the first token (pooling_mode_cls_token, CLS), which sees no other token in a "
      "model with causal attention. {}",
      config.origin(), kOverride));
}

Config flag(const std::string& name, const std::string& text) {
  Json json = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (!json.is_object())
    throw SetupError(fmt::format("{}: must be a JSON object, as in {{\"key\": 1}}", name));
  return {std::move(json), name};
}

void expect_keys(const Config& config, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : config.json().items()) {
    if (std::ranges::count(known, key) == 0 && !value.is_null())
      config.fail(
          key, fmt::format("is not a supported key; supported keys: {}", fmt::join(known, ", ")));
  }
}

std::optional<Pooling> asked_kind(const Config& config) {
  for (const char* key : {"pooling_type", "seq_pooling_type"}) {
    if (!config.has(key)) continue;
    const std::string type = config.text(key);
    if (type == "LAST") return Pooling::kLast;
    if (type == "MEAN") return Pooling::kMean;
    if (type == "CLS") return Pooling::kFirst;
    config.fail(key, fmt::format("is \"{}\"; only LAST, MEAN and CLS are supported", type));
  }
  return std::nullopt;
}

void read_matryoshka(const Config& config, PoolingPlan& plan) {
  if (config.has("matryoshka_dimensions")) {
    plan.matryoshka_dimensions = config.integers("matryoshka_dimensions");
    plan.matryoshka = true;
  }
  plan.matryoshka = config.boolean_or("is_matryoshka", plan.matryoshka);
}

// vLLM's default: the first token of an encoder, and nothing for models that may generate.
std::optional<PoolingPlan> usual_pooling(const Config& config) {
  if (!is_encoder_type(config.text_or("model_type", ""))) return std::nullopt;
  return PoolingPlan{.kind = Pooling::kFirst};
}

}  // namespace

std::optional<PoolingPlan> find_pooling(const Checkpoint& checkpoint,
                                        std::optional<Pooling> known) {
  auto plan = checkpoint.gguf() != nullptr ? from_gguf(*checkpoint.gguf(), known.has_value())
                                           : from_folder(checkpoint.folder(), known.has_value());
  if (known && !plan) plan.emplace();
  if (known) plan->kind = *known;
  return plan;
}

std::optional<PoolingPlan> plan_pooling(const Checkpoint& checkpoint,
                                        const PoolingOptions& options) {
  if (options.runner == RunnerKind::kGenerate) return std::nullopt;
  const Config asked = flag("--pooler-config", options.pooler_config);
  expect_keys(asked, {"pooling_type", "seq_pooling_type", "use_activation", "dimensions"});
  const Config overrides = flag("--hf-overrides", options.hf_overrides);
  expect_keys(overrides, {"is_matryoshka", "matryoshka_dimensions", "max_position_embeddings",
                          "architectures", "classifier_from_token", "is_original_qwen3_reranker"});
  const Config config = read_config(checkpoint);
  const std::optional<Pooling> kind = asked_kind(asked);
  std::optional<PoolingPlan> plan = find_classifier(checkpoint, config, overrides);
  if (plan) {
    plan->kind = kind.value_or(plan->kind);
  } else {
    plan = find_pooling(checkpoint, kind);
  }
  if (!plan) plan = usual_pooling(config);
  if (!plan && options.runner == RunnerKind::kAuto && asked.json().empty()) return std::nullopt;
  if (!plan) plan.emplace();
  if (!is_encoder_type(config.text_or("model_type", ""))) {
    refuse_bidirectional(config);
    refuse_first_token(*plan, config);
  }
  read_matryoshka(config, *plan);
  if (checkpoint.gguf() == nullptr) read_text_limits(checkpoint.folder(), *plan);
  read_matryoshka(overrides, *plan);
  plan->normalize = asked.boolean_or("use_activation", plan->normalize);
  if (asked.has("dimensions")) {
    if (plan->labels > 0) asked.fail("dimensions", "has no effect: this model returns scores");
    plan->dimensions = asked.integer("dimensions");
  }
  return plan;
}

}  // namespace octavo
