// mask_worker.h - fills token masks on threads of its own, while the engine's step runs. No MLX.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "kernels/types/token_mask.h"
#include "scheduler/constraint.h"

namespace octavo {

// Runs what it is given, in order of arrival; what is left when it dies still runs. Its threads
// start with the first work. Any thread.
class MaskWorker {
 public:
  explicit MaskWorker(int threads) : most_threads_(threads) {}
  ~MaskWorker();
  MaskWorker(const MaskWorker&) = delete;
  MaskWorker& operator=(const MaskWorker&) = delete;

  void run(std::function<void()> work);

 private:
  void serve();

  int most_threads_;
  std::mutex mutex_;  // all below
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

using MaskSlots = std::vector<std::shared_ptr<TokenMask>>;

// What one answer may say next. Handed over in order by one thread, worked off in that order by the
// worker, whose threads alone touch the constraint's state.
class ConstrainedAnswer {
 public:
  // The worker must outlive it, but not what it was still given.
  ConstrainedAnswer(MaskWorker& worker, std::shared_ptr<const Constraint> constraint);

  // The answer goes on with this token for good.
  void accept(TokenId token);
  // slots[i]: what may come behind the tokens accepted so far and the first i of `drafts`, which
  // has one less. Behind a draft that may not come everything may: a draw there is never kept.
  // Every slot is set in the end.
  void fill(MaskSlots slots, std::vector<TokenId> drafts = {});

 private:
  struct Job {
    std::optional<TokenId> accepted = {};
    MaskSlots slots = {};
    std::vector<TokenId> drafts = {};
  };
  // Outlives the answer while the worker has something of it.
  struct Strand;

  void hand_over(Job job);

  MaskWorker& worker_;
  std::shared_ptr<Strand> strand_;
};

}  // namespace octavo
