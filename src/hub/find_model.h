// find_model.h - from a model's name to a path that can be opened, downloading it if need be.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "hub/hub_client.h"
#include "hub/hub_settings.h"
#include "hub/local_model.h"

namespace octavo {

struct HubOptions {
  HubSettings settings = hub_settings_from_env();
  bool download = true;  // what is nowhere on this machine
  bool force = false;    // download also what does not fit into memory
  double memory_fraction = 0.9;
  int connections = 4;
  OnDownload on_download = [](uint64_t, uint64_t, bool) { return true; };
  // Told what the user should know: what an alias stands for, what is downloaded and why.
  std::function<void(const std::string&)> say = [](const std::string&) {};
  // Sees config.json before the weights are downloaded; throws when they would be of no use.
  std::function<void(const std::filesystem::path&)> check_config = [](const auto&) {};
};

struct FoundModel {
  std::filesystem::path path;
  std::string place;  // "path", "Hugging Face cache", "LM Studio", "Ollama", "download"
};

inline constexpr const char* kPathPlace = "path";

// Looks for a path, an alias, and in the cache of huggingface_hub, LM Studio's and Ollama's
// folders; then downloads. Throws SetupError that says where it looked and which names are near.
FoundModel find_model(const std::string& name, const HubOptions& options);

// Asks the hub what the revision is now and fetches what is missing of it. The name may be an
// alias.
FoundModel pull_model(const std::string& name, const HubOptions& options);

// All models of this machine, place by place.
std::vector<LocalModel> local_models(const HubSettings& settings);

}  // namespace octavo
