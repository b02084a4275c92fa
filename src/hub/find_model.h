// find_model.h - resolves a model's name to a path, downloading the model if necessary.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hub/hub_client.h"
#include "hub/hub_settings.h"
#include "hub/local_model.h"

namespace octavo {

struct HubOptions {
  HubSettings settings = hub_settings_from_env();
  bool download = true;  // models that are not on this machine
  bool force = false;    // also download models that do not fit in memory
  double memory_fraction = 0.9;
  int connections = 4;
  OnDownload on_download = [](uint64_t, uint64_t, bool) { return true; };
  // Receives messages for the user, such as the meaning of an alias or what is downloaded.
  std::function<void(const std::string&)> say = [](const std::string&) {};
  // Called with config.json before the weights are downloaded; throws if the model is unsupported.
  std::function<void(const std::filesystem::path&)> check_config = [](const auto&) {};
  // The same for GGUF files, with the architecture that the hub lists.
  std::function<void(const std::string&)> check_gguf_architecture = [](const auto&) {};
};

struct FoundModel {
  std::filesystem::path path;
  std::string place;  // "path", "Hugging Face cache", "LM Studio", "Ollama", "download"
};

inline constexpr const char* kPathPlace = "path";

// Tries a path, an alias, the cache of huggingface_hub and the folders of LM Studio and Ollama,
// then downloads. Throws SetupError that lists the places searched and similar names.
FoundModel find_model(const std::string& name, const HubOptions& options);

// Finds a model on this machine by its name or alias, never by a path, and downloads nothing.
std::optional<FoundModel> find_local_model(const std::string& name, const HubSettings& settings);

// Queries the hub for the current commit of the revision and downloads the missing files. The name
// may be an alias.
FoundModel pull_model(const std::string& name, const HubOptions& options);

// Returns all models on this machine, grouped by place.
std::vector<LocalModel> local_models(const HubSettings& settings);

}  // namespace octavo
