#include "models/families.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/error.h"

namespace octavo {
namespace {

struct Family {
  const char* model_type;
  DecoderPlan (*plan)(const Config&);
};

constexpr std::array kFamilies = {
    Family{"gpt_oss", plan_gpt_oss}, Family{"llama", plan_llama},
    Family{"mistral", plan_mistral}, Family{"mixtral", plan_mixtral},
    Family{"qwen2", plan_qwen2},     Family{"qwen2_moe", plan_qwen2_moe},
    Family{"qwen3", plan_qwen3},     Family{"qwen3_moe", plan_qwen3_moe},
    Family{"smollm3", plan_smollm3},
};

}  // namespace

std::vector<std::string> known_model_types() {
  std::vector<std::string> types;
  for (const auto& family : kFamilies) types.emplace_back(family.model_type);
  return types;
}

DecoderPlan plan_model(const Config& config) {
  const std::string type = config.text("model_type");
  for (const auto& family : kFamilies) {
    if (type == family.model_type) return family.plan(config);
  }
  throw SetupError(
      fmt::format("{}: model_type \"{}\" is not supported yet; known are {}. "
                  "docs/adding-a-model.md shows how to add one.",
                  config.origin(), type, fmt::join(known_model_types(), ", ")));
}

}  // namespace octavo
