#include "cli/lora_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

constexpr int kMostRank = 256;

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
  command
      .add_flag("--lora-experts", lora_experts,
                "Plan memory for adapters of a mixture's experts: as many matrices as experts")
      ->group(group);
}

bool LoraFlags::finish() {
  for (const std::string& text : lora_modules) sources.push_back(api::parse_lora_module(text));
  if (!enable_lora && !sources.empty()) throw SetupError("--lora-modules requires --enable-lora");
  if (!enable_lora && lora_experts) throw SetupError("--lora-experts requires --enable-lora");
  return enable_lora && environment_allows_updates();
}

std::optional<AdapterOptions> LoraFlags::options() const {
  if (!enable_lora) return std::nullopt;
  const int needed = std::max(max_loras, static_cast<int>(sources.size()));
  return AdapterOptions{.max_loras = max_loras,
                        .max_lora_rank = max_lora_rank,
                        .max_cpu_loras = max_cpu_loras > 0 ? max_cpu_loras : needed,
                        .experts = lora_experts};
}

std::string LoraFlags::describe() const {
  const auto limits = options();
  return fmt::format("{} loaded, up to {}; {} at once, rank up to {}{}", sources.size(),
                     limits->max_cpu_loras, limits->max_loras, limits->max_lora_rank,
                     lora_experts ? ", experts too" : "");
}

}  // namespace octavo
