#include "cache/sequence_pages.h"

#include <algorithm>

#include "base/error.h"

namespace octavo {

SequencePages::SequencePages(const CachePlan& plan, PagePool& pool)
    : plan_(&plan), pool_(&pool), leases_(plan.groups.size()) {}

void SequencePages::adopt(std::span<const std::vector<PageId>> pages) {
  OCTAVO_CHECK(pages.size() == leases_.size());
  for (size_t g = 0; g < leases_.size(); ++g) {
    OCTAVO_CHECK(leases_[g].pages().empty());
    leases_[g] = pool_->share(pages[g]);
  }
}

bool SequencePages::grow_to(int tokens) {
  const auto missing = [&](size_t g) {
    const int wanted = plan_->groups[g].pages_for(tokens);
    return std::max(0, wanted - static_cast<int>(leases_[g].pages().size()));
  };
  int total = 0;
  for (size_t g = 0; g < leases_.size(); ++g) total += missing(g);
  if (total > pool_->available_pages()) return false;
  for (size_t g = 0; g < leases_.size(); ++g) {
    if (missing(g) > 0) leases_[g].append(*pool_->try_lease(missing(g)));
  }
  return true;
}

void SequencePages::shrink_to(int tokens) {
  for (size_t g = 0; g < leases_.size(); ++g)
    leases_[g].truncate(static_cast<size_t>(plan_->groups[g].pages_for(tokens)));
}

void SequencePages::release_behind(int position) {
  for (size_t g = 0; g < leases_.size(); ++g) {
    const int window = plan_->groups[g].spec.window;
    if (window == 0) continue;
    const int passed = std::max(0, position - window + 1) / plan_->groups[g].block_tokens;
    leases_[g].release_front(std::min(static_cast<size_t>(passed), leases_[g].pages().size()));
  }
}

void SequencePages::release() {
  for (auto& lease : leases_) lease = PageLease();
}

}  // namespace octavo
