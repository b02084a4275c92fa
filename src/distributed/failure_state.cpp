#include "distributed/failure_state.h"

#include <utility>

namespace octavo {

bool FailureState::fail(const std::string& why) {
  std::vector<Callback> callbacks;
  {
    const std::lock_guard lock(mutex_);
    if (why_) return false;
    why_ = why;
    callbacks = std::move(callbacks_);
  }
  for (const Callback& call : callbacks) call(why);
  return true;
}

std::optional<std::string> FailureState::get() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

void FailureState::throw_if_failed() const {
  const std::lock_guard lock(mutex_);
  if (why_) throw ClusterError(*why_);
}

void FailureState::on_failure(Callback call) {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    if (!why_) {
      callbacks_.push_back(std::move(call));
      return;
    }
    why = *why_;
  }
  call(why);
}

}  // namespace octavo
