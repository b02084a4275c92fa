#include "models/tensor_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "models/decoder_model.h"

namespace octavo {

std::vector<std::string> tensor_problems(const Checkpoint& checkpoint,
                                         const ModelDescription& model) {
  WeightSource source(checkpoint, nullptr, WeightUse::kCheck);
  std::vector<std::string> problems;
  try {
    // Requests every tensor that loading would.
    DecoderModel(model.plan, model.dtype, source);
  } catch (const SetupError& error) {
    problems.emplace_back(error.what());
  }
  problems.insert(problems.begin(), source.problems().begin(), source.problems().end());
  return problems;
}

uint64_t share_bytes(const Checkpoint& checkpoint, const ModelDescription& model,
                     const OutputShare& share) {
  WeightSource source(checkpoint, nullptr, WeightUse::kCheck);
  source.set_share(share);
  DecoderModel(model.plan, model.dtype, source);
  return source.loaded_bytes() + model.plan.of_rank(share.ranks).decoded_bytes(model.dtype);
}

void check_tensors(const Checkpoint& checkpoint, const ModelDescription& model) {
  constexpr size_t kShown = 3;
  const std::vector<std::string> problems = tensor_problems(checkpoint, model);
  if (problems.empty()) return;
  std::string text = problems.front();
  for (size_t i = 1; i < std::min(kShown, problems.size()); ++i) text += "; " + problems[i];
  if (problems.size() > kShown) text += fmt::format("; and {} more", problems.size() - kShown);
  throw SetupError(text);
}

}  // namespace octavo
