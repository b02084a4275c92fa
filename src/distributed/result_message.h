// result_message.h - a worker's results of a step, as bytes. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/step_runner.h"

namespace octavo {

// Every worker sends one per step. Those of the ranks that draw nothing have an empty result.
struct ResultMessage {
  uint64_t number = 0;                    // of the step
  std::optional<std::string> error = {};  // set: the step failed on this rank
  StepResult result = {};
};

std::vector<std::byte> encode(const ResultMessage& message);
// Throws WireError.
ResultMessage decode_result(std::span<const std::byte> bytes);

// What the results of a step must look like.
class ResultShape {
 public:
  explicit ResultShape(const Batch& batch);
  // Throws WireError if `result` is not one of such a step: other counts, tokens outside the
  // vocabulary, or hidden rows that do not have `hidden` numbers each (0: any number).
  void check(const StepResult& result, int vocab, int hidden = 0) const;

 private:
  size_t tokens_;
  bool wants_logprobs_;
  bool wants_hashes_;
  bool predicts_;
  size_t prompt_logprobs_;
  size_t hidden_rows_;
};

}  // namespace octavo
