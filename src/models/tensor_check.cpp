#include "models/tensor_check.h"

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

}  // namespace octavo
