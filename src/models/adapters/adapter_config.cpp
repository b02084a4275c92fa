#include "models/adapters/adapter_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "base/error.h"
#include "models/format/printable.h"

namespace octavo {
namespace {

using AdapterJson = nlohmann::json;

constexpr int kLargestRank = 1 << 16;  // --max-lora-rank is checked against the tensors

bool says_nothing(const AdapterJson& value) {
  return value.is_null() || value == false || (value.is_structured() && value.empty());
}

// -1 if it is not a number.
double number_of(const AdapterJson& value) { return value.is_number() ? value.get<double>() : -1; }

// Keys of PEFT's LoraConfig that do not change an answer, or whose values are checked elsewhere.
const std::set<std::string_view> kPeftKeys = {"alpha_pattern",
                                              "auto_mapping",
                                              "base_model_name_or_path",
                                              "bias",
                                              "eva_config",
                                              "exclude_modules",
                                              "inference_mode",
                                              "init_lora_weights",
                                              "layers_pattern",
                                              "layers_to_transform",
                                              "lora_alpha",
                                              "lora_dropout",
                                              "megatron_core",
                                              "peft_type",
                                              "peft_version",
                                              "qalora_group_size",
                                              "r",
                                              "rank_pattern",
                                              "revision",
                                              "target_modules",
                                              "task_type",
                                              "use_rslora"};

void refuse_peft_keys(const Config& config) {
  if (config.text_or("peft_type", "LORA") != "LORA")
    config.fail("peft_type", "only LORA adapters are supported");
  if (config.text_or("bias", "none") != "none")
    config.fail("bias", "adapters with trained biases are not supported");
  const AdapterJson* saved = config.find("modules_to_save");
  if (saved != nullptr && !says_nothing(*saved))
    config.fail("modules_to_save", fmt::format("whole modules in an adapter are not supported: {}",
                                               printable(saved->dump(-1, ' ', true))));
  const AdapterJson* parameters = config.find("target_parameters");
  if (parameters != nullptr && !says_nothing(*parameters))
    config.fail("target_parameters",
                fmt::format("adapters of parameters that are not linear modules, such as fused "
                            "experts, are not supported: {}",
                            printable(parameters->dump(-1, ' ', true))));
  // PiSSA, OLoRA and similar methods change the base weights too.
  const AdapterJson* init = config.find("init_lora_weights");
  if (init != nullptr && !init->is_boolean() && *init != "gaussian" && *init != "eva" &&
      *init != "orthogonal")
    config.fail(
        "init_lora_weights",
        fmt::format("{} changes the weights of the base model; convert the adapter to plain "
                    "LoRA",
                    printable(init->dump(-1, ' ', true))));
  for (const auto& [key, value] : config.json().items()) {
    if (key == "use_dora" || key == "modules_to_save" || kPeftKeys.contains(key)) continue;
    if (!says_nothing(value)) config.fail(printable(key), "is not known and may change the output");
  }
}

// The keys are regular expressions; only those that are plain ends of names are read.
template <typename Number>
std::vector<std::pair<std::string, Number>> read_pattern(const Config& config, const char* key,
                                                         double low) {
  std::vector<std::pair<std::string, Number>> pattern;
  const AdapterJson* object = config.find(key);
  if (object == nullptr) return pattern;
  if (!object->is_object()) config.fail(key, "must be an object");
  for (auto entry = object->begin(); entry != object->end(); ++entry) {
    const std::string& name = entry.key();
    const bool plain = std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    });
    if (!plain || name.empty())
      config.fail(key, fmt::format("{} is not the name of a module; regular expressions are not "
                                   "supported",
                                   in_quotes(name)));
    const double number = number_of(*entry);
    if (!(number >= low && number <= kLargestRank) ||
        (std::is_integral_v<Number> && number != std::floor(number)))
      config.fail(key, fmt::format("{} has no valid number", in_quotes(name)));
    pattern.emplace_back(name, static_cast<Number>(number));
  }
  return pattern;
}

std::string without_adapter_root(std::string name) {
  constexpr std::string_view kRoot = "base_model.model.";
  return name.starts_with(kRoot) ? name.substr(kRoot.size()) : name;
}

bool ends_with_name(const std::string& module, const std::string& end) {
  return module == end || (module.ends_with(end) && module.size() > end.size() &&
                           module[module.size() - end.size() - 1] == '.');
}

template <typename Number>
Number value_for(const std::vector<std::pair<std::string, Number>>& pattern,
                 const std::string& module, Number otherwise) {
  const auto found = std::ranges::find_if(
      pattern, [&](const auto& entry) { return ends_with_name(module, entry.first); });
  return found == pattern.end() ? otherwise : found->second;
}

void refuse_dora(const Config& config, const char* key, LoraUse use) {
  if (use == LoraUse::kServe)
    config.fail(key,
                "a DoRA adapter cannot be served among others; merge it into the model with "
                "--merge-adapter PATH");
}

AdapterConfig read_peft(const Config& config, LoraUse use) {
  refuse_peft_keys(config);
  AdapterConfig adapter{.format = AdapterFormat::kPeft};
  adapter.dora = config.boolean_or("use_dora", false);
  if (adapter.dora) refuse_dora(config, "use_dora", use);
  adapter.rank = config.integer("r", 1, kLargestRank);
  adapter.alpha = config.positive("lora_alpha");
  adapter.rslora = config.boolean_or("use_rslora", false);
  adapter.rank_pattern = read_pattern<int>(config, "rank_pattern", 1);
  adapter.alpha_pattern = read_pattern<double>(config, "alpha_pattern", 1e-6);
  // A single text is a regular expression or "all-linear": the tensors say which modules it meant.
  const AdapterJson* targets = config.find("target_modules");
  if (targets != nullptr && !targets->is_string()) {
    adapter.target_modules = config.texts("target_modules");
    for (std::string& name : *adapter.target_modules) name = without_adapter_root(std::move(name));
  }
  return adapter;
}

AdapterConfig read_mlx(const Config& config, LoraUse use) {
  const std::string type = config.text_or("fine_tune_type", "lora");
  if (type == "dora") refuse_dora(config, "fine_tune_type", use);
  if (type != "lora" && type != "dora")
    config.fail("fine_tune_type",
                fmt::format("{} is not supported, only lora and dora", in_quotes(type)));
  const auto parameters = config.object("lora_parameters");
  if (!parameters) config.fail("lora_parameters", "is missing");
  for (const auto& [key, value] : parameters->json().items()) {
    // mlx-lm ignores alpha.
    const bool known = key == "rank" || key == "scale" || key == "dropout" || key == "keys" ||
                       key == "alpha" || says_nothing(value);
    if (!known) parameters->fail(printable(key), "is not known and may change the output");
  }
  AdapterConfig adapter{.format = AdapterFormat::kMlx};
  adapter.dora = type == "dora";
  adapter.rank = parameters->integer("rank", 1, kLargestRank);
  adapter.scale = static_cast<float>(parameters->positive("scale"));
  adapter.num_layers = config.integer("num_layers", -1);
  if (parameters->has("keys")) adapter.target_modules = parameters->texts("keys");
  return adapter;
}

}  // namespace

int AdapterConfig::rank_of(const std::string& module) const {
  return value_for(rank_pattern, module, rank);
}

float AdapterConfig::scale_of(const std::string& module) const {
  if (format == AdapterFormat::kMlx) return scale;
  const double own_rank = rank_of(module);
  return static_cast<float>(value_for(alpha_pattern, module, alpha) /
                            (rslora ? std::sqrt(own_rank) : own_rank));
}

void AdapterConfig::check_module(const std::string& full_name, const std::string& module,
                                 int layers) const {
  const auto refuse = [&](const std::string& why) {
    throw SetupError(fmt::format("module {}: {}", in_quotes(module), why));
  };
  if (format == AdapterFormat::kPeft) {
    if (target_modules && std::ranges::none_of(*target_modules, [&](const std::string& name) {
          return ends_with_name(full_name, name);
        }))
      refuse("the file has tensors of it, but target_modules does not name it");
    return;
  }
  if (!module.starts_with("layers.")) {
    if (!target_modules || std::ranges::count(*target_modules, full_name) == 0)
      refuse("the file has tensors of it, but lora_parameters.keys does not name it");
    return;
  }
  const size_t dot = module.find('.', std::string_view("layers.").size());
  if (dot == std::string::npos) refuse("is not in a layer");
  const std::string within = module.substr(dot + 1);
  if (target_modules && std::ranges::count(*target_modules, within) == 0)
    refuse("the file has tensors of it, but lora_parameters.keys does not name it");
  const int layer = std::atoi(module.c_str() + std::string_view("layers.").size());
  if (num_layers > 0 && layer < layers - num_layers)
    refuse(fmt::format("the file has tensors of it, but num_layers is {}", num_layers));
}

AdapterConfig read_adapter_config(const std::string& text, const std::filesystem::path& file,
                                  AdapterFormat format, LoraUse use) {
  AdapterJson json = AdapterJson::parse(text, nullptr, false);
  if (!json.is_object()) throw SetupError(file.string() + ": is not a JSON object");
  const Config config(std::move(json), file.string());
  return format == AdapterFormat::kPeft ? read_peft(config, use) : read_mlx(config, use);
}

}  // namespace octavo
