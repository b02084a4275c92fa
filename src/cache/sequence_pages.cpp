#include "cache/sequence_pages.h"

#include <algorithm>

#include "base/error.h"

namespace octavo {

SequencePages::SequencePages(const CachePlan& plan, PagePool& pool)
    : plan_(&plan), pool_(&pool), leases_(plan.groups.size()) {}

bool SequencePages::grow_to(int tokens) {
  std::vector<int> missing;
  int total = 0;
  for (size_t g = 0; g < leases_.size(); ++g) {
    const int wanted = plan_->groups[g].pages_for(tokens);
    missing.push_back(std::max(0, wanted - static_cast<int>(leases_[g].pages().size())));
    total += missing.back();
  }
  if (total > pool_->free_pages()) return false;
  for (size_t g = 0; g < leases_.size(); ++g) {
    auto lease = pool_->try_lease(missing[g]);
    OCTAVO_CHECK(lease.has_value());
    leases_[g].append(std::move(*lease));
  }
  return true;
}

void SequencePages::shrink_to(int tokens) {
  for (size_t g = 0; g < leases_.size(); ++g) {
    leases_[g].truncate(static_cast<size_t>(plan_->groups[g].pages_for(tokens)));
  }
}

}  // namespace octavo
