#include "server/admission.h"

#include <algorithm>
#include <cmath>

namespace octavo::server {

bool Allowance::Lease::grow_to(int64_t amount) {
  const int64_t more = amount - amount_;
  if (more <= 0) return true;
  if (from_->lent_ + more > from_->most_) return false;
  from_->lent_ += more;
  amount_ = amount;
  return true;
}

std::optional<Allowance::Lease> Allowance::try_lend(int64_t amount) {
  if (lent_ + amount > most_) return std::nullopt;
  lent_ += amount;
  return Lease(this, amount);
}

void Backlog::request_ended(Clock::time_point now) {
  if (last_end_ != Clock::time_point{}) {
    const double gap = std::chrono::duration<double>(now - last_end_).count();
    // Idle time does not measure speed.
    const double capped = std::min(gap, 10.0);
    seconds_between_ends_ =
        seconds_between_ends_ == 0 ? capped : 0.9 * seconds_between_ends_ + 0.1 * capped;
  }
  last_end_ = now;
}

std::chrono::seconds Backlog::retry_after(int64_t open) const {
  const double wait = std::ceil(static_cast<double>(open) * seconds_between_ends_);
  return std::chrono::seconds(static_cast<int64_t>(std::clamp(wait, 1.0, 120.0)));
}

}  // namespace octavo::server
