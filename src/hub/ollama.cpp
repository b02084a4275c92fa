#include "hub/ollama.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "hub/model_file.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct ModelBlob {
  fs::path path;
  uint64_t bytes = 0;
};

// Returns the model layer; nullopt if there is none, or if the model needs an adapter.
std::optional<ModelBlob> model_of(const fs::path& manifest, const fs::path& folder) {
  std::ifstream file(manifest);
  const Json json = Json::parse(file, nullptr, false);
  if (!json.is_object() || !json.contains("layers") || !json["layers"].is_array())
    return std::nullopt;
  std::optional<ModelBlob> found;
  for (const Json& layer : json["layers"]) {
    if (!layer.is_object()) continue;
    const std::string kind = layer.value("mediaType", "");
    if (kind == "application/vnd.ollama.image.adapter") return std::nullopt;
    if (kind != "application/vnd.ollama.image.model") continue;
    std::string digest = layer.value("digest", "");
    if (!digest.starts_with("sha256:") || digest.find('/') != std::string::npos)
      return std::nullopt;
    digest[std::string_view("sha256").size()] = '-';
    found = {.path = folder / "blobs" / digest, .bytes = layer.value("size", uint64_t{0})};
  }
  return found;
}

bool is_whole(const ModelBlob& blob) {
  std::error_code error;
  return fs::file_size(blob.path, error) == blob.bytes && !error;
}

// Shortens "registry.ollama.ai/library/NAME/TAG" as Ollama's commands do.
std::string short_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  std::string name = path.substr(0, slash) + ":" + path.substr(slash + 1);
  for (const std::string_view usual : {"registry.ollama.ai/library/", "registry.ollama.ai/"}) {
    if (name.starts_with(usual)) return name.substr(usual.size());
  }
  return name;
}

}  // namespace

std::vector<LocalModel> list_ollama(const fs::path& folder) {
  std::vector<LocalModel> models;
  for (const ModelFile& manifest : files_in(folder / "manifests")) {
    if (std::ranges::count(manifest.path, '/') < 2) continue;
    const auto blob = model_of(folder / "manifests" / manifest.path, folder);
    if (!blob) continue;
    models.push_back({.name = short_name(manifest.path),
                      .path = blob->path,
                      .bytes = blob->bytes,
                      .kind = "GGUF",
                      .place = kOllamaPlace,
                      .is_complete = is_whole(*blob)});
  }
  return models;
}

std::optional<fs::path> find_in_ollama(const std::string& name, const fs::path& folder) {
  const bool tagged = name.find(':', name.rfind('/') + 1) != std::string::npos;
  const std::string wanted = tagged ? name : name + ":latest";
  for (const LocalModel& model : list_ollama(folder)) {
    if (model.name == wanted && model.is_complete) return model.path;
  }
  return std::nullopt;
}

}  // namespace octavo
