// ollama.h - models of Ollama, read in place: a manifest names the GGUF file among the blobs.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/local_model.h"
#include "hub/model_name.h"

namespace octavo {

inline constexpr const char* kOllamaPlace = "Ollama";

// `folder` is what OLLAMA_MODELS names.
std::vector<LocalModel> list_ollama(const std::filesystem::path& folder);

// By NAME[:TAG], USER/NAME[:TAG] or HOST/USER/NAME[:TAG]; no tag is "latest".
std::optional<std::filesystem::path> find_in_ollama(const std::string& name,
                                                    const std::filesystem::path& folder);

}  // namespace octavo
