#include "models/tensor_prefix.h"

#include <array>
#include <string>

namespace octavo {
namespace {

struct Names {
  const char* prefix;
  const char* head;
};

// As Hugging Face, mlx-lm and older Hugging Face checkpoints have them, and those that were saved
// without a head.
constexpr std::array<Names, 4> kKnown = {{
    {"model", "lm_head"},
    {"model.language_model", "lm_head"},
    {"language_model.model", "language_model.lm_head"},
    {"", "lm_head"},
}};

}  // namespace

void find_tensor_prefix(const Checkpoint& checkpoint, DecoderPlan& plan) {
  if (checkpoint.gguf() != nullptr) return;
  const auto found = [&] { return checkpoint.find(plan.tensor("embed_tokens.weight")) != nullptr; };
  const std::string usual_prefix = plan.prefix;
  const std::string usual_head = plan.head_name;
  if (found()) return;
  for (const auto& names : kKnown) {
    plan.prefix = names.prefix;
    plan.head_name = names.head;
    if (found()) return;
  }
  plan.prefix = usual_prefix;
  plan.head_name = usual_head;
}

bool is_of_language_model(const TensorView& tensor, const DecoderPlan& plan) {
  const bool of_head = !plan.head_name.empty() && tensor.name.starts_with(plan.head_name + ".");
  // Without a prefix nothing stands beside it but a head.
  if (plan.prefix.empty()) return of_head || !tensor.name.starts_with("lm_head.");
  return of_head || tensor.name.starts_with(plan.prefix + ".");
}

}  // namespace octavo
