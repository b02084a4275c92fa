#include "models/tensor_prefix.h"

#include <array>
#include <string>

namespace octavo {
namespace {

struct Names {
  const char* prefix;
  const char* head;
};

// As Hugging Face, mlx-lm and older Hugging Face checkpoints have them.
constexpr std::array<Names, 3> kKnown = {{
    {"model", "lm_head"},
    {"model.language_model", "lm_head"},
    {"language_model.model", "language_model.lm_head"},
}};

}  // namespace

void find_tensor_prefix(const Checkpoint& checkpoint, DecoderPlan& plan) {
  if (checkpoint.gguf() != nullptr) return;
  const auto found = [&](const std::string& prefix) {
    return checkpoint.find(prefix + ".embed_tokens.weight") != nullptr;
  };
  if (found(plan.prefix)) return;
  for (const auto& names : kKnown) {
    if (!found(names.prefix)) continue;
    plan.prefix = names.prefix;
    plan.head_name = names.head;
    return;
  }
}

bool is_of_language_model(const TensorView& tensor, const DecoderPlan& plan) {
  return tensor.name.starts_with(plan.prefix + ".") ||
         tensor.name.starts_with(plan.head_name + ".");
}

}  // namespace octavo
