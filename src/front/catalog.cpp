#include "front/catalog.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

#include "base/nearest_names.h"
#include "hub/aliases.h"
#include "hub/file_choice.h"
#include "hub/find_model.h"
#include "hub/model_name.h"

namespace octavo::front {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultTag = ":latest";
constexpr size_t kLongestName = 512;

fs::path identity_of(const fs::path& path) {
  std::error_code error;
  const fs::path canonical = fs::weakly_canonical(path, error);
  return error ? path : canonical;
}

// "model-00001-of-00003.gguf" and "model.gguf" are both "model".
std::string name_of_file(const fs::path& path) {
  static const std::regex piece("-[0-9]{5}-of-[0-9]{5}$");
  if (path.extension() != ".gguf") return path.filename().string();
  return std::regex_replace(path.stem().string(), piece, "");
}

// Whether octavo could download it.
bool is_hub_name(const std::string& name) {
  const std::string_view alias = resolve_alias(name);
  const auto parsed = parse_model_name(alias.empty() ? name : std::string(alias));
  return parsed && parsed->has_org();
}

CatalogModel found_file(std::string name, const fs::path& path, const FileChoice& choice) {
  return {.name = std::move(name),
          .source = path.string(),
          .place = "models folder",
          .file_bytes = choice.bytes()};
}

std::vector<CatalogModel> models_in(const fs::path& folder) {
  std::vector<CatalogModel> found;
  std::vector<ModelFile> files = files_in(folder);
  std::erase_if(files, [](const ModelFile& file) { return file.path.find('/') != file.path.npos; });
  for (const FileChoice& choice : all_choices(files)) {
    const fs::path path = folder / choice.opened;
    if (choice.is_complete)
      found.push_back(
          found_file(name_of_file(choice.opened.empty() ? folder : path), path, choice));
  }
  for (const fs::path& inner : folders_in(folder)) {
    const auto choices = all_choices(files_in(inner));
    const std::string name = inner.filename().string();
    for (const FileChoice& choice : choices) {
      if (!choice.is_complete) continue;
      const bool alone = choices.size() == 1 || choice.opened.empty();
      found.push_back(found_file(alone ? name : name + "/" + name_of_file(choice.opened),
                                 inner / choice.opened, choice));
    }
  }
  return found;
}

}  // namespace

Catalog::Catalog(CatalogOptions options)
    : options_(std::make_shared<const CatalogOptions>(std::move(options))) {
  std::error_code error;
  if (!options_->models_dir.empty() && !fs::is_directory(options_->models_dir, error))
    throw SetupError(fmt::format("--models-dir {}: no such folder", options_->models_dir.string()));
  add_command_line();
  add_preset();
  fixed_ = models_.size();
  scan_folders();
  check_preload();
}

Catalog Catalog::rescanned() const {
  Catalog fresh;
  fresh.options_ = options_;
  for (size_t i = 0; i < fixed_; ++i) fresh.list(models_[i]);
  fresh.fixed_ = fixed_;
  fresh.scan_folders();
  return fresh;
}

// A model that the user names is downloaded when it is first needed, as octavo serve MODEL does.
CatalogModel Catalog::model_of(const std::string& given) const {
  HubOptions here{.settings = options_->hub, .download = false};
  std::error_code error;
  const bool local = fs::exists(given, error) || find_local_model(given, options_->hub).has_value();
  if (!local && is_hub_name(given)) return {.name = given, .source = given, .downloads = true};
  const FoundModel found = find_model(given, here);
  return {.name = found.place == kPathPlace ? name_of_file(identity_of(found.path)) : given,
          .source = found.path.string()};
}

void Catalog::add_command_line() {
  for (const std::string& given : options_->models) {
    CatalogModel model = model_of(given);
    model.place = "command line";
    model.flags = options_->preset.flags;
    model.keep_alive = options_->preset.keep_alive;
    model.kv_share = options_->preset.kv_share;
    // A section of the preset describes a model of the command line, too.
    const bool described =
        std::ranges::any_of(options_->preset.models, [&](const ModelPreset& preset) {
          return preset.name == model.name && preset.model.empty();
        });
    if (described) continue;
    add_fixed(std::move(model), given);
  }
}

void Catalog::add_preset() {
  for (const ModelPreset& preset : options_->preset.models) {
    std::string given = preset.model.empty() ? preset.name : preset.model;
    if (preset.model.empty()) {
      for (const std::string& other : options_->models)
        if (model_of(other).name == preset.name) given = other;
    }
    CatalogModel model = model_of(given);
    model.name = preset.name;
    model.place = "preset";
    model.aliases = preset.aliases;
    model.flags = preset.flags;
    model.preload = preset.preload;
    model.pinned = preset.pinned;
    model.keep_alive = preset.keep_alive;
    model.kv_share = preset.kv_share;
    add_fixed(std::move(model), given);
  }
}

void Catalog::add_fixed(CatalogModel model, const std::string& given) {
  for (const std::string& alias : model.aliases) {
    if (by_name_.contains(alias))
      throw SetupError(
          fmt::format("the alias {} of {} is the name of another model", alias, model.name));
  }
  if (const auto other = by_name_.find(model.name); other != by_name_.end()) {
    throw SetupError(
        fmt::format("two models have the name {}: {} and {}; give one of them another name with "
                    "--preset: [NAME] and model = \"{}\"",
                    model.name, other->second->source, model.source, model.source));
  }
  const auto entry = std::make_shared<const CatalogModel>(std::move(model));
  list(entry);
  by_name_.emplace(given, entry);
}

void Catalog::list(const CatalogModelPtr& model) {
  models_.push_back(model);
  by_name_.emplace(model->name, model);
  for (const std::string& alias : model->aliases) by_name_.emplace(alias, model);
  if (!model->downloads) by_path_.emplace(identity_of(model->source), model);
}

void Catalog::add_found(CatalogModel model) {
  if (by_name_.contains(model.name)) return;
  if (const auto same = by_path_.find(identity_of(model.source)); same != by_path_.end()) {
    by_name_.emplace(model.name, same->second);
    return;
  }
  model.flags = options_->preset.flags;
  model.keep_alive = options_->preset.keep_alive;
  model.kv_share = options_->preset.kv_share;
  list(std::make_shared<const CatalogModel>(std::move(model)));
}

void Catalog::scan_folders() {
  if (!options_->models_dir.empty())
    for (CatalogModel& model : models_in(options_->models_dir)) add_found(std::move(model));
  for (LocalModel& model : local_models(options_->hub)) {
    if (!model.is_complete) continue;
    add_found({.name = std::move(model.name),
               .source = model.path.string(),
               .place = std::move(model.place),
               .file_bytes = model.bytes});
  }
}

void Catalog::check_preload() {
  for (const std::string& name : options_->preload) {
    if (find(name) != nullptr) continue;
    try {
      find_on_disk(name);
    } catch (const RequestError& error) {
      throw SetupError(fmt::format("--preload: {}", error.what()));
    }
  }
}

CatalogModelPtr Catalog::find(std::string_view name) const {
  const auto exact = [&](std::string_view wanted) -> CatalogModelPtr {
    const auto found = by_name_.find(wanted);
    return found == by_name_.end() ? nullptr : found->second;
  };
  if (auto found = exact(name)) return found;
  if (name.ends_with(kDefaultTag)) return exact(name.substr(0, name.size() - kDefaultTag.size()));
  return exact(std::string(name) + std::string(kDefaultTag));
}

CatalogModelPtr Catalog::find_on_disk(const std::string& name) const {
  if (auto listed = find(name)) return listed;
  if (name.empty() || name.size() > kLongestName) fail_unknown(name.substr(0, 80));
  CatalogModel model{.name = name,
                     .flags = options_->preset.flags,
                     .keep_alive = options_->preset.keep_alive,
                     .kv_share = options_->preset.kv_share};
  if (const auto found = find_local_model(name, options_->hub)) {
    const auto listed = by_path_.find(identity_of(found->path));
    if (listed != by_path_.end()) return listed->second;
    model.source = found->path.string();
    model.place = found->place;
  } else if (options_->allow_pull && is_hub_name(name)) {
    model.source = name;
    model.downloads = true;
    model.place = "download";
  } else {
    fail_unknown(name);
  }
  return std::make_shared<const CatalogModel>(std::move(model));
}

void Catalog::fail_unknown(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [each, model] : by_name_) {
    // A path says where the files are.
    if (each != model->source || model->downloads) known.push_back(each);
  }
  const std::string near =
      known.empty()
          ? "no model is known here"
          : fmt::format("the nearest names are {}", fmt::join(nearest_names(name, known, 3), ", "));
  const std::string pull =
      !options_->allow_pull && is_hub_name(name)
          ? "; to download a model, run octavo pull, or start the server with --allow-pull"
          : "";
  throw RequestError(
      404, "model",
      fmt::format("\"{}\" does not exist; {}; /v1/models lists all{}", name, near, pull));
}

}  // namespace octavo::front
