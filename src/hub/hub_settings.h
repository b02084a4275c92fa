// hub_settings.h - where models are kept and how the hub is reached, from the environment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace octavo {

// The variables are huggingface_hub's, Ollama's, and for tests our own.
struct HubSettings {
  std::filesystem::path cache;   // HF_HUB_CACHE, HF_HOME
  std::string endpoint;          // HF_ENDPOINT
  std::string token;             // HF_TOKEN, or the file HF_TOKEN_PATH names
  bool offline = false;          // HF_HUB_OFFLINE
  uint64_t timeout_ms = 10'000;  // HF_HUB_DOWNLOAD_TIMEOUT, in seconds there
  std::filesystem::path ollama;  // OLLAMA_MODELS
  std::vector<std::filesystem::path> lm_studio;
  uint64_t chunk_bytes = 16 << 20;  // OCTAVO_HUB_CHUNK_BYTES
  uint64_t retry_ms = 500;          // OCTAVO_HUB_RETRY_MS: the first wait, doubled each time
};

HubSettings hub_settings_from_env();

}  // namespace octavo
