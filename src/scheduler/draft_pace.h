// draft_pace.h - how well one sequence's drafts do, and whether it is worth drafting now. No MLX.
#pragma once

#include <algorithm>

namespace octavo {

class DraftPace {
 public:
  // Whether drafts may be tried at this length: after failures there is a pause that doubles each
  // time.
  bool may_draft(int length) const { return length >= resume_at_; }
  // How likely a draft is right when all before it were.
  double chance() const { return right_ / tried_; }
  // Of `drafted` drafts behind `length` tokens the first `right` were.
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

  bool waited = false;  // a step was held back so that it could draft

 private:
  static constexpr int kFirstPause = 4;
  static constexpr int kLongestPause = 512;

  // As if a few had been tried, most of them right.
  double right_ = 2.1;
  double tried_ = 3;
  int resume_at_ = 0;
  int pause_ = kFirstPause;
};

}  // namespace octavo
