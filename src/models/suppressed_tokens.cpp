#include "models/suppressed_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "models/config.h"

namespace octavo {
namespace {

// Every request has a copy.
constexpr size_t kMostSuppressed = 16384;

std::vector<int64_t> stored_suppressed(const Checkpoint& checkpoint) {
  if (const Gguf* gguf = checkpoint.gguf()) {
    return gguf->find_integers("tokenizer.ggml.suppress_tokens").value_or(std::vector<int64_t>{});
  }
  const auto path = checkpoint.folder() / "generation_config.json";
  if (!std::filesystem::exists(path)) return {};
  const auto ids = Config(read_json(path), path.string()).integers("suppress_tokens");
  return {ids.begin(), ids.end()};
}

}  // namespace

std::vector<int> suppressed_token_ids(const Checkpoint& checkpoint, int vocab) {
  std::vector<int> ids;
  for (const int64_t id : stored_suppressed(checkpoint)) {
    if (id >= 0 && id < vocab) ids.push_back(static_cast<int>(id));
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  if (ids.size() > kMostSuppressed || ids.size() >= static_cast<size_t>(vocab)) {
    throw SetupError(
        fmt::format("{}: suppress_tokens has {} of {} tokens; at most {} of them are supported",
                    checkpoint.path().string(), ids.size(), vocab,
                    std::min(kMostSuppressed, static_cast<size_t>(vocab) - 1)));
  }
  return ids;
}

}  // namespace octavo
