#include "cli/parse/foreign_environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace octavo {
namespace {

struct ForeignVariable {
  std::string_view name;
  std::string_view instead;
};

constexpr std::array kForeignVariables = {
    ForeignVariable{"VLLM_METAL_MEMORY_FRACTION", "use --memory-fraction"},
    ForeignVariable{"VLLM_METAL_USE_PAGED_ATTENTION", "the KV cache is always paged"},
    ForeignVariable{"VLLM_METAL_BLOCK_SIZE", "use --block-size"},
    ForeignVariable{"VLLM_METAL_USE_MLX", "use --device"},
    ForeignVariable{"VLLM_MLX_DEVICE", "use --device"},
    ForeignVariable{"VLLM_METAL_DEBUG", "use OCTAVO_LOG=debug"},
    ForeignVariable{"VLLM_METAL_DECODE_PIPELINE", "steps are always queued one ahead"},
    ForeignVariable{"VLLM_METAL_MLA_KERNEL", "latent attention always runs in a kernel"},
};

// Names of variables are not octavo's own text: others could command a terminal.
bool is_plain(std::string_view name) {
  return std::ranges::all_of(
      name, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

std::optional<std::string> note_of(std::string_view name) {
  const auto found = std::ranges::find(kForeignVariables, name, &ForeignVariable::name);
  if (found != kForeignVariables.end()) return fmt::format("{} ({})", name, found->instead);
  if (!name.starts_with("VLLM_METAL_") || !is_plain(name)) return std::nullopt;
  return fmt::format("{} (no equivalent)", name);
}

}  // namespace

std::optional<std::string> foreign_environment_note(const char* const* environment) {
  std::vector<std::string> notes;
  for (; *environment != nullptr; ++environment) {
    const std::string_view entry = *environment;
    const size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals + 1 == entry.size()) continue;  // empty: unset
    if (auto note = note_of(entry.substr(0, equals))) notes.push_back(std::move(*note));
  }
  if (notes.empty()) return std::nullopt;
  std::ranges::sort(notes);
  return fmt::format("variables of vllm-metal have no effect: {}", fmt::join(notes, ", "));
}

}  // namespace octavo
