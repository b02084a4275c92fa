#include "engine/tensor/tensor_steps.h"

#include <exception>

#include "base/error.h"
#include "engine/cluster/current_error.h"

namespace octavo {

void TensorSteps::start(const StepMessage& step, bool) {
  runner_.start(step.batch);
  steps_.push_back(step.number);
}

ResultMessage TensorSteps::finish() {
  OCTAVO_CHECK(!steps_.empty());
  ResultMessage message{.number = steps_.front()};
  steps_.pop_front();
  try {
    message.result = runner_.finish();
  } catch (const LinkError&) {
    throw;
  } catch (...) {
    if (!error_) error_ = current_error();
  }
  message.error = error_;
  if (message.error) message.result = {};
  return message;
}

void TensorSteps::drop() {
  runner_.drop();
  steps_.clear();
  error_.reset();
}

}  // namespace octavo
