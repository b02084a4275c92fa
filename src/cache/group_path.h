// group_path.h - the cached pages of one group along a sequence, and which prefixes they cover. No
// MLX.
#pragma once

#include <algorithm>
#include <vector>

#include "cache/cache_plan.h"

namespace octavo {

// Counts the contiguous cached pages that end at each page.
class GroupPath {
 public:
  explicit GroupPath(const CacheGroup& group) : group_(&group) {}

  // Adds the next page, which is cached or not.
  void add(bool there) { run_.push_back(there ? (run_.empty() ? 0 : run_.back()) + 1 : 0); }

  // The first page that a row after `pages_before` pages still reads.
  int first_needed(int pages_before) const {
    const int window = group_->spec.window;
    if (window == 0) return 0;
    return std::max(0, pages_before * group_->block_tokens - window + 1) / group_->block_tokens;
  }
  bool serves(int tokens) const {
    if (tokens % group_->block_tokens != 0) return false;
    const int count = tokens / group_->block_tokens;
    return run_[static_cast<size_t>(count - 1)] >= count - first_needed(count);
  }

 private:
  const CacheGroup* group_;
  std::vector<int> run_;  // run_[p]: number of contiguous cached pages up to and including p
};

}  // namespace octavo
