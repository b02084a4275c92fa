// merge_adapter.h - merges the adapter of --merge-adapter while a model is loaded. Shows no MLX.
#pragma once

#include <optional>
#include <string>

#include "base/sha256.h"
#include "models/model_description.h"

namespace octavo {

class WeightSource;

// Returns the digest of the adapter in `folder`, which `source` will merge; nothing if it is empty.
// Throws SetupError.
std::optional<Sha256Digest> merge_adapter(const ModelDescription& model, const std::string& folder,
                                          WeightSource& source);

}  // namespace octavo
