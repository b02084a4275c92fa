// change_queue.h - changes of the prefix cache on their way to the thread that sends them: bounded,
// never waits. No MLX. Any thread.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "kv_events/change.h"

namespace octavo::kv_events {

class ChangeQueue : public PrefixObserver {
 public:
  // `wake` is called when the queue is no longer empty.
  ChangeQueue(size_t most, std::function<void()> wake);

  void begin(const CachePlan& plan) override;
  void stored(CachedBlock block, CacheMedium medium) override;
  void removed(int group, uint64_t hash, CacheMedium medium) override;
  void cleared() override;

  struct Batch {
    std::deque<Change> changes = {};
    size_t dropped = 0;  // before them, because the queue was full
  };
  // Everything that waits, oldest first.
  Batch take();
  // The plan of begin(), once.
  std::optional<CachePlan> take_plan();

 private:
  void add(Change change);

  const size_t most_;
  const std::function<void()> wake_;
  std::mutex mutex_;  // guards all below
  Batch waiting_;
  std::optional<CachePlan> plan_;
};

}  // namespace octavo::kv_events
