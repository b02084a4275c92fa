#include "kv_events/change_queue.h"

#include <utility>

namespace octavo::kv_events {

ChangeQueue::ChangeQueue(size_t most, std::function<void()> wake)
    : most_(most), wake_(std::move(wake)) {}

void ChangeQueue::begin(const CachePlan& plan) {
  {
    const std::lock_guard lock(mutex_);
    plan_ = plan;
  }
  // A server that was restarted at this address has lost the blocks of the one before.
  cleared();
}

void ChangeQueue::stored(CachedBlock block, CacheMedium medium) {
  add(Stored{std::move(block), medium});
}

void ChangeQueue::removed(int group, uint64_t hash, CacheMedium medium) {
  add(Removed{group, hash, medium});
}

void ChangeQueue::cleared() { add(Cleared{}); }

void ChangeQueue::add(Change change) {
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = waiting_.changes.empty();
    if (waiting_.changes.size() >= most_) {
      waiting_.changes.pop_front();
      ++waiting_.dropped;
    }
    waiting_.changes.push_back(std::move(change));
  }
  if (first) wake_();
}

ChangeQueue::Batch ChangeQueue::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(waiting_, {});
}

std::optional<CachePlan> ChangeQueue::take_plan() {
  const std::lock_guard lock(mutex_);
  return std::exchange(plan_, std::nullopt);
}

}  // namespace octavo::kv_events
