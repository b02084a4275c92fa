#include "engine/merge_adapter.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/error.h"
#include "models/adapters/merged_adapter.h"
#include "models/weight_source.h"

namespace octavo {

std::optional<Sha256Digest> merge_adapter(const ModelDescription& model, const std::string& folder,
                                          WeightSource& source) {
  if (folder.empty()) return std::nullopt;
  try {
    auto adapter = std::make_unique<MergedAdapter>(folder, model.plan);
    const Sha256Digest digest = adapter->digest();
    source.set_merged_adapter(std::move(adapter));
    return digest;
  } catch (const SetupError& error) {
    throw SetupError(fmt::format("--merge-adapter: {}", error.what()));
  }
}

}  // namespace octavo
