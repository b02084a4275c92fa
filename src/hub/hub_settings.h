// hub_settings.h - model folders and hub access, from environment variables.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo {

// docs/environment.md describes the variables.
struct HubSettings {
  std::filesystem::path cache;   // HF_HUB_CACHE, HF_HOME
  std::string endpoint;          // HF_ENDPOINT
  std::string token;             // HF_TOKEN, or the content of the file HF_TOKEN_PATH
  bool offline = false;          // HF_HUB_OFFLINE
  uint64_t timeout_ms = 10'000;  // HF_HUB_DOWNLOAD_TIMEOUT, which is in seconds
  std::filesystem::path ollama;  // OLLAMA_MODELS
  std::vector<std::filesystem::path> lm_studio;
  uint64_t chunk_bytes = 16 << 20;  // OCTAVO_HUB_CHUNK_BYTES
  uint64_t retry_ms = 500;  // OCTAVO_HUB_RETRY_MS: delay of the first retry; doubles each time
};

HubSettings hub_settings_from_env();

}  // namespace octavo
