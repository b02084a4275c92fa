#include "cli/lora_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

constexpr int kMostRank = 256;

[[noreturn]] void refuse_module(const std::string& text, std::string_view why) {
  throw SetupError(fmt::format(
      R"(--lora-modules {}: {}; write name=path or '{{"name": "NAME", "path": "PATH"}}')", text,
      why));
}

api::AdapterSource parse_json_module(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) refuse_module(text, "is not a JSON object");
  api::AdapterSource source;
  for (const auto& [key, value] : json.items()) {
    if (key == "base_model_name" && value.is_null()) continue;
    if (!value.is_string()) refuse_module(text, "its values must be texts");
    if (key == "name") {
      source.name = value.get<std::string>();
    } else if (key == "path") {
      source.path = value.get<std::string>();
    } else if (key == "base_model_name") {
      source.base_model_name = value.get<std::string>();
    } else {
      refuse_module(text, "has a key that is not known");
    }
  }
  return source;
}

// vLLM's variable, or the same with Octavo's name.
bool environment_allows_updates() {
  for (const char* name :
       {"OCTAVO_ALLOW_RUNTIME_LORA_UPDATING", "VLLM_ALLOW_RUNTIME_LORA_UPDATING"}) {
    const char* value = std::getenv(name);
    if (value == nullptr) continue;
    std::string text = value;
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    });
    if (text == "1" || text == "true") return true;
  }
  return false;
}

}  // namespace

api::AdapterSource parse_lora_module(const std::string& text) {
  api::AdapterSource source;
  if (text.starts_with('{')) {
    source = parse_json_module(text);
  } else {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) refuse_module(text, "has no =");
    source = {.name = text.substr(0, equals), .path = text.substr(equals + 1)};
  }
  if (source.name.empty() || source.path.empty())
    refuse_module(text, "the name or the path is missing");
  return source;
}

void LoraFlags::add_to(CLI::App& command) {
  const std::string group = "LoRA adapters";
  command
      .add_flag("--enable-lora", enable_lora,
                "Serve LoRA adapters of PEFT and mlx-lm; requests choose one by its name as model")
      ->group(group);
  command
      .add_option("--lora-modules", lora_modules,
                  "Adapters to load: name=path, or JSON {\"name\", \"path\", \"base_model_name\"}; "
                  "one or more, may be repeated")
      ->allow_extra_args(false)
      ->group(group);
  command
      .add_option("--max-loras", max_loras,
                  "Adapters that may be in use at once; sequences of further ones wait")
      ->transform(whole_number(1, 4096))
      ->capture_default_str()
      ->group(group);
  command.add_option("--max-lora-rank", max_lora_rank, "Largest rank of an adapter, up to 256")
      ->transform(whole_number(1, kMostRank))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-cpu-loras", max_cpu_loras,
                  "Adapters that may be loaded, at least --max-loras (default: those of "
                  "--lora-modules, or --max-loras if that is more)")
      ->transform(whole_number(1, 1 << 20))
      ->group(group);
}

bool LoraFlags::finish() {
  for (const std::string& text : lora_modules) sources.push_back(parse_lora_module(text));
  if (!enable_lora && !sources.empty()) throw SetupError("--lora-modules requires --enable-lora");
  return enable_lora && environment_allows_updates();
}

std::optional<AdapterOptions> LoraFlags::options() const {
  if (!enable_lora) return std::nullopt;
  const int needed = std::max(max_loras, static_cast<int>(sources.size()));
  return AdapterOptions{.max_loras = max_loras,
                        .max_lora_rank = max_lora_rank,
                        .max_cpu_loras = max_cpu_loras > 0 ? max_cpu_loras : needed};
}

std::string LoraFlags::describe() const {
  const auto limits = options();
  return fmt::format("{} loaded, up to {}; {} at once, rank up to {}", sources.size(),
                     limits->max_cpu_loras, limits->max_loras, limits->max_lora_rank);
}

}  // namespace octavo
