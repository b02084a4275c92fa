// ollama.h - finds Ollama's models and reads them in place: a manifest names the GGUF blob.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "hub/local_model.h"
#include "hub/model_name.h"

namespace octavo {

inline constexpr const char* kOllamaPlace = "Ollama";

// `folder` is the value of OLLAMA_MODELS.
std::vector<LocalModel> list_ollama(const std::filesystem::path& folder);

// Finds a model by NAME[:TAG], USER/NAME[:TAG] or HOST/USER/NAME[:TAG]; the default tag is
// "latest".
std::optional<std::filesystem::path> find_in_ollama(const std::string& name,
                                                    const std::filesystem::path& folder);

}  // namespace octavo
