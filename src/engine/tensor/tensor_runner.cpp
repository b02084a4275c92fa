#include "engine/tensor/tensor_runner.h"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "engine/cluster/drop_steps.h"

namespace octavo {

void TensorRunner::start(const Batch& batch) {
  OCTAVO_CHECK(batch.adapter_slots.empty());
  const StepMessage step{.number = next_step_, .batch = batch};
  cluster_.announce(step, StepPart::kLayers);
  ++next_step_;
  steps_.push_back(step.number);
  try {
    runner_.start(batch);
  } catch (...) {
    links_.stop();  // the other ranks would wait for this one's parts
    throw;
  }
}

StepResult TensorRunner::finish() {
  OCTAVO_CHECK(!steps_.empty());
  const uint64_t number = steps_.front();
  steps_.pop_front();
  std::exception_ptr own;
  StepResult result;
  try {
    result = runner_.finish();
  } catch (...) {
    own = std::current_exception();
  }
  // If the links have failed, the other ranks end too, which says more.
  const ResultMessage others = cluster_.wait_result(number);
  if (own) std::rethrow_exception(own);
  if (others.error) throw std::runtime_error(*others.error);
  return result;
}

void TensorRunner::drop() {
  runner_.drop();
  steps_.clear();
  next_step_ = 0;
  drop_steps(cluster_);
}

}  // namespace octavo
