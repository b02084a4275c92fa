// lm_studio.h - finds LM Studio's models and reads them in place: PUBLISHER/REPO/ with GGUF files
// or a model folder.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "hub/local_model.h"
#include "hub/model_name.h"

namespace octavo {

inline constexpr const char* kLmStudioPlace = "LM Studio";

std::vector<LocalModel> list_lm_studio(const std::vector<std::filesystem::path>& folders);

// Finds a model by PUBLISHER/REPO or REPO, ignoring case; a variant selects one of its GGUF files.
std::optional<std::filesystem::path> find_in_lm_studio(
    const ModelName& name, const std::vector<std::filesystem::path>& folders);

}  // namespace octavo
