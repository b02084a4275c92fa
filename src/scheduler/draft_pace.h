// draft_pace.h - the acceptance rate of one sequence's drafts, and when to try again. No MLX.
#pragma once

#include <algorithm>

namespace octavo {

class DraftPace {
 public:
  // False during the pause that follows rejected drafts; it doubles each time.
  bool may_draft(int length) const { return length >= resume_at_; }
  // Probability that a draft token is accepted if all before it are.
  double chance() const { return right_ / tried_; }
  // The first `right` of `drafted` draft tokens after `length` tokens were accepted.
  void observe(int drafted, int right, int length) {
    constexpr double kKept = 0.8;
    right_ = right_ * kKept + right;
    tried_ = tried_ * kKept + std::min(drafted, right + 1);
    if (2 * right >= drafted) {
      pause_ = kFirstPause;
    } else if (right == 0) {
      resume_at_ = length + pause_;
      pause_ = std::min(2 * pause_, kLongestPause);
    }
  }

  bool waited = false;  // a step was delayed to make a draft possible

 private:
  static constexpr int kFirstPause = 4;
  static constexpr int kLongestPause = 512;

  // Prior: a few tries, most of them accepted.
  double right_ = 2.1;
  double tried_ = 3;
  int resume_at_ = 0;
  int pause_ = kFirstPause;
};

}  // namespace octavo
