#include "hub/find_model.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/nearest_names.h"
#include "hub/aliases.h"
#include "hub/hub_cache.h"
#include "hub/lm_studio.h"
#include "hub/ollama.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

bool exists(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Whether `name` can only be a path.
bool is_written_as_path(const std::string& name) {
  const fs::path path(name);
  const bool has_ending = path.extension() == ".gguf" || path.extension() == ".safetensors";
  return name.starts_with('/') || name.starts_with('.') || name.starts_with('~') ||
         (has_ending && name.find(':') == std::string::npos) || name.ends_with('/');
}

std::optional<FoundModel> find_here(const std::string& name, const HubSettings& settings) {
  const auto parsed = parse_model_name(name);
  if (parsed) {
    if (auto path = HubCache(settings.cache).find(*parsed))
      return FoundModel{.path = *path, .place = kHubCachePlace};
    if (auto path = find_in_lm_studio(*parsed, settings.lm_studio))
      return FoundModel{.path = *path, .place = kLmStudioPlace};
  }
  if (auto path = find_in_ollama(name, settings.ollama))
    return FoundModel{.path = *path, .place = kOllamaPlace};
  return std::nullopt;
}

std::string near_names(const std::string& name, const HubSettings& settings) {
  std::vector<std::string> known;
  for (const Alias& alias : all_aliases()) known.emplace_back(alias.name);
  for (const LocalModel& model : local_models(settings))
    if (model.is_complete) known.push_back(model.name);
  // The name itself is not a suggestion, even if it is an alias of a model that is not here.
  std::erase_if(known, [&](const std::string& other) { return other == name; });
  std::ranges::sort(known);
  known.erase(std::ranges::unique(known).begin(), known.end());
  return fmt::format("{}", fmt::join(nearest_names(name, known, 3), ", "));
}

[[noreturn]] void fail_unknown(const std::string& name, const HubOptions& options,
                               const std::string& why) {
  const HubSettings& settings = options.settings;
  throw SetupError(
      fmt::format("{}: no such model here. Looked for a file or folder of this name, an alias, and "
                  "in {} (Hugging Face), {} (LM Studio) and {} (Ollama). {} Similar names: {}",
                  name, settings.cache.string(),
                  settings.lm_studio.empty() ? "" : settings.lm_studio.front().string(),
                  settings.ollama.string(), why, near_names(name, settings)));
}

}  // namespace

FoundModel find_model(const std::string& name, const HubOptions& options) {
  if (exists(name)) return {.path = name, .place = kPathPlace};
  if (is_written_as_path(name)) {
    throw SetupError(fmt::format(
        "{}: no such file or folder; a model is a .gguf file, a folder with config.json and "
        "safetensors, or a model name on the hub like ORG/NAME",
        name));
  }
  std::string full = name;
  // A model of Ollama may have an alias's name.
  auto found = find_here(name, options.settings);
  if (const std::string_view model = resolve_alias(name); !found && !model.empty()) {
    full = model;
    options.say(fmt::format("{} is {}", name, full));
    found = find_here(full, options.settings);
  }
  if (found) {
    options.say(fmt::format("Found {}: {} ({})", full, found->path.string(), found->place));
    return *found;
  }
  const auto parsed = parse_model_name(full);
  if (!parsed || !parsed->has_org())
    fail_unknown(name, options, "To download a model, write ORG/NAME as on the hub.");
  if (!options.download) fail_unknown(name, options, "Nothing was downloaded.");
  if (options.settings.offline)
    fail_unknown(name, options, "HF_HUB_OFFLINE is set, so nothing is downloaded.");
  return pull_model(full, options);
}

std::optional<FoundModel> find_local_model(const std::string& name, const HubSettings& settings) {
  if (auto found = find_here(name, settings)) return found;
  const std::string_view model = resolve_alias(name);
  return model.empty() ? std::nullopt : find_here(std::string(model), settings);
}

std::vector<LocalModel> local_models(const HubSettings& settings) {
  std::vector<LocalModel> models = HubCache(settings.cache).list();
  std::ranges::move(list_lm_studio(settings.lm_studio), std::back_inserter(models));
  std::ranges::move(list_ollama(settings.ollama), std::back_inserter(models));
  return models;
}

}  // namespace octavo
