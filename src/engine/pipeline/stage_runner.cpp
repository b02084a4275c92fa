#include "engine/pipeline/stage_runner.h"

#include <utility>

#include "base/error.h"
#include "base/widen.h"
#include "engine/cluster/current_error.h"

namespace octavo {

StageRunner::StageRunner(Runner& runner, RowsSender* next, size_t row_bytes)
    : runner_(runner), next_(next), row_bytes_(row_bytes) {}

void StageRunner::start(const StepMessage& step, const Embedded* input) {
  steps_.push_back({step.number, step.batch.rows()});
  if (error_) return send_zeros(steps_.back());
  try {
    runner_.start_stage(step.number, step.batch, input);
  } catch (...) {
    fail(current_error());
  }
}

void StageRunner::skip(const StepMessage& step, const std::string& error) {
  steps_.push_back({step.number, step.batch.rows()});
  if (error_) return send_zeros(steps_.back());
  fail(error);
}

ResultMessage StageRunner::finish() {
  OCTAVO_CHECK(!steps_.empty());
  ResultMessage message{.number = steps_.front().number};
  if (!error_) {
    try {
      message.result = runner_.finish();
    } catch (...) {
      fail(current_error());
    }
  }
  message.error = error_;
  steps_.pop_front();
  return message;
}

void StageRunner::drop() {
  runner_.drop();
  for (const Step& step : steps_) send_zeros(step);
  steps_.clear();
  error_.reset();
  if (next_ != nullptr) next_->restart();
}

void StageRunner::fail(const std::string& error) {
  error_ = error;
  // Afterwards no kernel runs, so it is known which rows were passed on.
  runner_.drop();
  for (const Step& step : steps_) send_zeros(step);
}

void StageRunner::send_zeros(const Step& step) {
  if (next_ != nullptr) next_->send(step.number, RowBytes(widen(step.rows) * row_bytes_));
}

}  // namespace octavo
