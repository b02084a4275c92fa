// catalog.h - the models that a front process serves, by name. Immutable: a scan makes a new one.
// Any thread. No MLX.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "front/preset.h"
#include "hub/hub_settings.h"

namespace octavo::front {

struct CatalogModel {
  std::string name = {};    // as listed and as its process is called
  std::string source = {};  // a path, or the name of a model to download
  bool downloads = false;   // `source` is a name
  std::string place = {};   // "command line", "preset", "models folder", "Ollama", ...
  uint64_t file_bytes = 0;  // 0: not known yet
  std::vector<std::string> aliases = {};
  std::vector<std::string> flags = {};  // of octavo serve, besides those for all models
  bool preload = false;
  bool pinned = false;
  std::optional<KeepAlive> keep_alive = {};
  std::optional<double> kv_share = {};
};

using CatalogModelPtr = std::shared_ptr<const CatalogModel>;

struct CatalogOptions {
  std::vector<std::string> models = {};   // paths and names of the command line
  Preset preset = {};                     // --preset
  std::filesystem::path models_dir = {};  // --models-dir; empty: none
  std::vector<std::string> preload = {};  // --preload: names
  bool allow_pull = false;                // --allow-pull: requests may cause downloads
  HubSettings hub = {};                   // folders of Hugging Face, LM Studio and Ollama
};

class Catalog {
 public:
  // Reads the folders. Throws SetupError if a model of the command line or the preset does not
  // exist, or if two of them have the same name.
  explicit Catalog(CatalogOptions options);
  // Reads the folders again. Models of the command line and the preset stay as they were.
  Catalog rescanned() const;

  // By name or alias, with or without Ollama's default tag ":latest". Null: not listed.
  CatalogModelPtr find(std::string_view name) const;
  // Also searches the folders for names that are not listed as such, for example ORG/NAME without a
  // quantisation, and octavo's short names. Never opens a path that a request names. Throws
  // RequestError(404) with the nearest names.
  CatalogModelPtr find_on_disk(const std::string& name) const;

  const std::vector<CatalogModelPtr>& models() const { return models_; }
  const CatalogOptions& options() const { return *options_; }

 private:
  Catalog() = default;
  void add_command_line();
  void add_preset();
  void check_preload();
  void scan_folders();
  void add_fixed(CatalogModel model, const std::string& given);
  // Of a folder: a model whose name is taken is left out; one whose file is listed already becomes
  // another name of it.
  void add_found(CatalogModel model);
  void list(const CatalogModelPtr& model);
  CatalogModel model_of(const std::string& given) const;
  [[noreturn]] void fail_unknown(const std::string& name) const;

  std::shared_ptr<const CatalogOptions> options_;
  std::vector<CatalogModelPtr> models_;
  size_t fixed_ = 0;  // of the command line and the preset, first in models_
  std::map<std::string, CatalogModelPtr, std::less<>> by_name_;
  std::map<std::filesystem::path, CatalogModelPtr> by_path_;
};

}  // namespace octavo::front
