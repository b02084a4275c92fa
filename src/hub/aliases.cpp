#include "hub/aliases.h"

#include <algorithm>
#include <array>

namespace octavo {
namespace {

constexpr std::array kAliases = {
    Alias{"smollm2", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF"},
    Alias{"smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct"},
    Alias{"smollm2-360m", "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF"},
    Alias{"smollm3", "HuggingFaceTB/SmolLM3-3B"},
    Alias{"qwen3-0.6b", "Qwen/Qwen3-0.6B-GGUF"},
    Alias{"qwen3-1.7b", "Qwen/Qwen3-1.7B-GGUF"},
    Alias{"qwen3-4b", "Qwen/Qwen3-4B-GGUF"},
    Alias{"qwen3-8b", "Qwen/Qwen3-8B-GGUF"},
    Alias{"gemma3-1b", "mlx-community/gemma-3-1b-it-4bit"},
    Alias{"gemma3-4b", "mlx-community/gemma-3-4b-it-4bit"},
    Alias{"gpt-oss-20b", "mlx-community/gpt-oss-20b-MXFP4-Q8"},
};

}  // namespace

std::span<const Alias> all_aliases() { return kAliases; }

std::string_view resolve_alias(std::string_view name) {
  const auto* found = std::ranges::find(kAliases, name, &Alias::name);
  return found == kAliases.end() ? std::string_view() : found->model;
}

}  // namespace octavo
