#include "cache/sequence_pages.h"

#include <algorithm>

#include "base/error.h"

namespace octavo {

SequencePages::SequencePages(const CachePlan& plan, PagePool& pool)
    : plan_(&plan), pool_(&pool), leases_(plan.groups.size()), state_(pool, plan.state_pages()) {}

void SequencePages::adopt(std::span<const std::vector<PageId>> pages,
                          std::span<const PageId> state) {
  OCTAVO_CHECK(pages.size() == leases_.size());
  for (size_t g = 0; g < leases_.size(); ++g) {
    OCTAVO_CHECK(leases_[g].pages().empty());
    leases_[g] = pool_->share(pages[g]);
  }
  if (plan_->state) state_.adopt(state);
}

bool SequencePages::grow_to(int tokens, int drafts) {
  const auto missing = [&](size_t g) {
    const int wanted = plan_->groups[g].pages_for(tokens);
    return std::max(0, wanted - static_cast<int>(leases_[g].pages().size()));
  };
  int total = state_.missing(drafts);
  for (size_t g = 0; g < leases_.size(); ++g) total += missing(g);
  if (total > pool_->available_pages()) return false;
  for (size_t g = 0; g < leases_.size(); ++g) {
    if (missing(g) > 0) leases_[g].append(*pool_->try_lease(missing(g)));
  }
  state_.grow(drafts);
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
  state_.release_behind(position);
}

void SequencePages::release() {
  for (auto& lease : leases_) lease = PageLease();
  state_.release();
}

}  // namespace octavo
