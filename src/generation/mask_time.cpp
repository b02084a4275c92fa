#include "generation/mask_time.h"

#include <algorithm>

namespace octavo {
namespace {

constexpr double kNewestShare = 1.0 / 16;  // in the running average

}  // namespace

bool TimeStore::take(Milliseconds used, Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  left_ = std::min(capacity_, left_ + Milliseconds(now - filled_) * refill_);
  filled_ = now;
  const bool enough = left_ >= used;
  // Not below empty: a debt would end requests that come later.
  left_ = std::max(Milliseconds(0), left_ - used);
  return enough;
}

bool MaskTime::charge(TimeStore::Milliseconds used) {
  const bool own = own_.take(used);
  const bool total = total_.take(used);
  const std::lock_guard lock(mutex_);
  average_ += (used - average_) * kNewestShare;
  return (own && total) || average_ < options_.slow_mask;
}

}  // namespace octavo
