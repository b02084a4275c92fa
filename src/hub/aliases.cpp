#include "hub/aliases.h"

#include <algorithm>
#include <array>
#include <string>

namespace octavo {
namespace {

constexpr std::array kAliases = {
    Alias{"smollm2", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF"},
    Alias{"smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF"},
    Alias{"smollm2-135m", "HuggingFaceTB/SmolLM2-135M-Instruct"},
    Alias{"smollm2-360m", "HuggingFaceTB/SmolLM2-360M-Instruct-GGUF"},
    Alias{"smollm3", "HuggingFaceTB/SmolLM3-3B"},
    Alias{"smollm3-3b", "HuggingFaceTB/SmolLM3-3B"},
    Alias{"qwen2.5", "mlx-community/Qwen2.5-7B-Instruct-4bit"},
    Alias{"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct-GGUF"},
    Alias{"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct-GGUF"},
    Alias{"qwen2.5-3b", "Qwen/Qwen2.5-3B-Instruct-GGUF"},
    Alias{"qwen2.5-7b", "mlx-community/Qwen2.5-7B-Instruct-4bit"},
    Alias{"qwen2.5-14b", "mlx-community/Qwen2.5-14B-Instruct-4bit"},
    Alias{"qwen2.5-32b", "mlx-community/Qwen2.5-32B-Instruct-4bit"},
    Alias{"qwen2.5-72b", "mlx-community/Qwen2.5-72B-Instruct-4bit"},
    Alias{"qwen2.5-coder", "mlx-community/Qwen2.5-Coder-7B-Instruct-4bit"},
    Alias{"qwen2.5-coder-1.5b", "mlx-community/Qwen2.5-Coder-1.5B-Instruct-4bit"},
    Alias{"qwen2.5-coder-3b", "mlx-community/Qwen2.5-Coder-3B-Instruct-4bit"},
    Alias{"qwen2.5-coder-7b", "mlx-community/Qwen2.5-Coder-7B-Instruct-4bit"},
    Alias{"qwen2.5-coder-14b", "mlx-community/Qwen2.5-Coder-14B-Instruct-4bit"},
    Alias{"qwen2.5-coder-32b", "mlx-community/Qwen2.5-Coder-32B-Instruct-4bit"},
    Alias{"qwen3", "Qwen/Qwen3-8B-GGUF"},
    Alias{"qwen3-0.6b", "Qwen/Qwen3-0.6B-GGUF"},
    Alias{"qwen3-1.7b", "Qwen/Qwen3-1.7B-GGUF"},
    Alias{"qwen3-4b", "Qwen/Qwen3-4B-GGUF"},
    Alias{"qwen3-8b", "Qwen/Qwen3-8B-GGUF"},
    Alias{"qwen3-14b", "Qwen/Qwen3-14B-GGUF"},
    Alias{"qwen3-32b", "Qwen/Qwen3-32B-GGUF"},
    Alias{"qwen3-30b-a3b", "Qwen/Qwen3-30B-A3B-GGUF"},
    Alias{"qwen3-235b-a22b", "mlx-community/Qwen3-235B-A22B-4bit"},
    Alias{"qwen3-4b-2507", "mlx-community/Qwen3-4B-Instruct-2507-4bit"},
    Alias{"qwen3-4b-thinking", "mlx-community/Qwen3-4B-Thinking-2507-4bit"},
    Alias{"qwen3-30b-a3b-2507", "mlx-community/Qwen3-30B-A3B-Instruct-2507-4bit"},
    Alias{"qwen3-coder", "mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit"},
    Alias{"qwen3-coder-30b", "mlx-community/Qwen3-Coder-30B-A3B-Instruct-4bit"},
    Alias{"qwen3-next-80b", "mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit"},
    Alias{"qwen3-embedding-0.6b", "Qwen/Qwen3-Embedding-0.6B"},
    Alias{"qwen3.5", "mlx-community/Qwen3.5-9B-MLX-4bit"},
    Alias{"qwen3.5-0.8b", "mlx-community/Qwen3.5-0.8B-MLX-4bit"},
    Alias{"qwen3.5-2b", "mlx-community/Qwen3.5-2B-MLX-4bit"},
    Alias{"qwen3.5-4b", "mlx-community/Qwen3.5-4B-MLX-4bit"},
    Alias{"qwen3.5-9b", "mlx-community/Qwen3.5-9B-MLX-4bit"},
    Alias{"qwen3.5-27b", "mlx-community/Qwen3.5-27B-4bit"},
    Alias{"qwen3.5-35b-a3b", "mlx-community/Qwen3.5-35B-A3B-4bit"},
    Alias{"qwen3.5-122b-a10b", "mlx-community/Qwen3.5-122B-A10B-4bit"},
    Alias{"llama3", "mlx-community/Meta-Llama-3-8B-Instruct-4bit"},
    Alias{"llama3-8b", "mlx-community/Meta-Llama-3-8B-Instruct-4bit"},
    Alias{"llama3.1", "mlx-community/Meta-Llama-3.1-8B-Instruct-4bit"},
    Alias{"llama3.1-8b", "mlx-community/Meta-Llama-3.1-8B-Instruct-4bit"},
    Alias{"llama3.1-70b", "mlx-community/Meta-Llama-3.1-70B-Instruct-4bit"},
    Alias{"llama3.2", "mlx-community/Llama-3.2-3B-Instruct-4bit"},
    Alias{"llama3.2-1b", "mlx-community/Llama-3.2-1B-Instruct-4bit"},
    Alias{"llama3.2-3b", "mlx-community/Llama-3.2-3B-Instruct-4bit"},
    Alias{"llama3.3", "mlx-community/Llama-3.3-70B-Instruct-4bit"},
    Alias{"llama3.3-70b", "mlx-community/Llama-3.3-70B-Instruct-4bit"},
    Alias{"tinyllama", "mlx-community/TinyLlama-1.1B-Chat-v1.0-4bit"},
    Alias{"gemma2", "mlx-community/gemma-2-9b-it-4bit"},
    Alias{"gemma2-2b", "mlx-community/gemma-2-2b-it-4bit"},
    Alias{"gemma2-9b", "mlx-community/gemma-2-9b-it-4bit"},
    Alias{"gemma2-27b", "mlx-community/gemma-2-27b-it-4bit"},
    Alias{"gemma3", "mlx-community/gemma-3-4b-it-4bit"},
    Alias{"gemma3-270m", "mlx-community/gemma-3-270m-it-4bit"},
    Alias{"gemma3-1b", "mlx-community/gemma-3-1b-it-4bit"},
    Alias{"gemma3-4b", "mlx-community/gemma-3-4b-it-4bit"},
    Alias{"gemma3-12b", "mlx-community/gemma-3-12b-it-4bit"},
    Alias{"gemma3-27b", "mlx-community/gemma-3-27b-it-4bit"},
    Alias{"gemma4", "mlx-community/gemma-4-e4b-it-4bit"},
    Alias{"gemma4-e2b", "mlx-community/gemma-4-e2b-it-4bit"},
    Alias{"gemma4-e4b", "mlx-community/gemma-4-e4b-it-4bit"},
    Alias{"gemma4-26b-a4b", "mlx-community/gemma-4-26b-a4b-it-4bit"},
    Alias{"gemma4-31b", "mlx-community/gemma-4-31b-it-4bit"},
    Alias{"mistral", "mlx-community/Mistral-7B-Instruct-v0.3-4bit"},
    Alias{"mistral-7b", "mlx-community/Mistral-7B-Instruct-v0.3-4bit"},
    Alias{"mistral-nemo", "mlx-community/Mistral-Nemo-Instruct-2407-4bit"},
    Alias{"mistral-small", "mlx-community/Mistral-Small-3.2-24B-Instruct-2506-4bit"},
    Alias{"mistral-small3.1", "mlx-community/Mistral-Small-3.1-24B-Instruct-2503-4bit"},
    Alias{"mistral-small3.2", "mlx-community/Mistral-Small-3.2-24B-Instruct-2506-4bit"},
    Alias{"ministral3-3b", "mlx-community/Ministral-3-3B-Instruct-2512-4bit"},
    Alias{"ministral3-14b", "mlx-community/Ministral-3-14B-Instruct-2512-4bit"},
    Alias{"phi3", "mlx-community/Phi-3-mini-4k-instruct-4bit"},
    Alias{"phi3.5", "mlx-community/Phi-3.5-mini-instruct-4bit"},
    Alias{"phi4", "mlx-community/phi-4-4bit"},
    Alias{"phi4-mini", "mlx-community/Phi-4-mini-instruct-4bit"},
    Alias{"gpt-oss", "mlx-community/gpt-oss-20b-MXFP4-Q8"},
    Alias{"gpt-oss-20b", "mlx-community/gpt-oss-20b-MXFP4-Q8"},
    Alias{"gpt-oss-120b", "mlx-community/gpt-oss-120b-MXFP4-Q8"},
    Alias{"deepseek-r1", "mlx-community/DeepSeek-R1-0528-Qwen3-8B-4bit"},
    Alias{"deepseek-r1-1.5b", "mlx-community/DeepSeek-R1-Distill-Qwen-1.5B-4bit"},
    Alias{"deepseek-r1-7b", "mlx-community/DeepSeek-R1-Distill-Qwen-7B-4bit"},
    Alias{"deepseek-r1-8b", "mlx-community/DeepSeek-R1-0528-Qwen3-8B-4bit"},
    Alias{"deepseek-r1-14b", "mlx-community/DeepSeek-R1-Distill-Qwen-14B-4bit"},
    Alias{"deepseek-r1-32b", "mlx-community/DeepSeek-R1-Distill-Qwen-32B-4bit"},
    Alias{"deepseek-r1-70b", "mlx-community/DeepSeek-R1-Distill-Llama-70B-4bit"},
    Alias{"granite3.3-2b", "mlx-community/granite-3.3-2b-instruct-4bit"},
    Alias{"granite3.3-8b", "mlx-community/granite-3.3-8b-instruct-4bit"},
    Alias{"olmo2-7b", "mlx-community/OLMo-2-1124-7B-Instruct-4bit"},
    Alias{"olmo2-32b", "mlx-community/OLMo-2-0325-32B-Instruct-4bit"},
    Alias{"olmo3-7b", "mlx-community/Olmo-3-7B-Instruct-4bit"},
    Alias{"lfm2-350m", "LiquidAI/LFM2-350M"},
    Alias{"lfm2-700m", "LiquidAI/LFM2-700M"},
    Alias{"lfm2-1.2b", "LiquidAI/LFM2-1.2B"},
    Alias{"lfm2-2.6b", "LiquidAI/LFM2-2.6B"},
    Alias{"glm4-9b", "mlx-community/GLM-4-9B-0414-4bit"},
    Alias{"glm4-32b", "mlx-community/GLM-4-32B-0414-4bit"},
    Alias{"glm4.7-flash", "mlx-community/GLM-4.7-Flash-4bit"},
};

}  // namespace

std::span<const Alias> all_aliases() { return kAliases; }

std::string_view resolve_alias(std::string_view name) {
  // Ollama writes qwen3:8b and llama3.2:latest.
  std::string dashed(name);
  if (dashed.ends_with(":latest"))
    dashed.resize(dashed.size() - std::string_view(":latest").size());
  std::ranges::replace(dashed, ':', '-');
  for (const Alias& alias : kAliases)
    if (alias.name == dashed) return alias.model;
  return {};
}

}  // namespace octavo
