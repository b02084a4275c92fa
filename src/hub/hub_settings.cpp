#include "hub/hub_settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "hub/model_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

// An empty variable counts as unset.
std::optional<std::string> env(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

fs::path home() { return env("HOME").value_or("/"); }

fs::path expanded(const std::string& path) {
  if (path == "~") return home();
  return path.starts_with("~/") ? home() / path.substr(2) : fs::path(path);
}

fs::path path_or(const char* name, const fs::path& otherwise) {
  const auto value = env(name);
  return value ? expanded(*value) : otherwise;
}

bool is_true(const char* name) {
  std::string value = env(name).value_or("");
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::tolower(c); });
  return value == "1" || value == "true" || value == "yes" || value == "on";
}

uint64_t number_or(const char* name, uint64_t otherwise) {
  const auto text = env(name);
  if (!text) return otherwise;
  uint64_t number = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end || number == 0)
    throw SetupError(std::string(name) + ": must be a positive integer, not " + *text);
  return number;
}

}  // namespace

HubSettings hub_settings_from_env() {
  HubSettings settings;
  const fs::path user_cache = path_or("XDG_CACHE_HOME", home() / ".cache");
  const fs::path hf_home = path_or("HF_HOME", user_cache / "huggingface");
  settings.cache = path_or("HF_HUB_CACHE", path_or("HUGGINGFACE_HUB_CACHE", hf_home / "hub"));
  settings.endpoint = env("HF_ENDPOINT").value_or("https://huggingface.co");
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();
  const auto token = env("HF_TOKEN");
  settings.token = token ? *token : first_word_of(path_or("HF_TOKEN_PATH", hf_home / "token"));
  settings.offline = is_true("HF_HUB_OFFLINE");
  settings.timeout_ms = 1000 * number_or("HF_HUB_DOWNLOAD_TIMEOUT", 10);
  settings.ollama = path_or("OLLAMA_MODELS", home() / ".ollama" / "models");
  settings.lm_studio = {home() / ".lmstudio" / "models",
                        home() / ".cache" / "lm-studio" / "models"};
  settings.chunk_bytes = number_or("OCTAVO_HUB_CHUNK_BYTES", settings.chunk_bytes);
  settings.retry_ms = number_or("OCTAVO_HUB_RETRY_MS", settings.retry_ms);
  return settings;
}

}  // namespace octavo
