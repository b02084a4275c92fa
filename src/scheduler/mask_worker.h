// mask_worker.h - fills token masks on its own threads while a step runs. No MLX.
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

// Runs work in order of arrival. The destructor waits for queued work. Threads start with the first
// work. Any thread.
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
  std::mutex mutex_;  // guards all below
  std::condition_variable ready_;
  std::deque<std::function<void()>> queue_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

using MaskSlots = std::vector<std::shared_ptr<TokenMask>>;

// The masks of one choice. Called by one thread; the worker runs the calls in order, and only its
// threads use the constraint's state.
class ConstrainedAnswer {
 public:
  // The worker must outlive this object.
  ConstrainedAnswer(MaskWorker& worker, std::shared_ptr<const Constraint> constraint);

  // Before all other calls: the choice has these tokens already. `state` is the constraint's state
  // after them; null: the worker follows them.
  void resume(std::span<const TokenId> tokens, std::shared_ptr<ConstraintState> state);
  // The choice continues with this token; it cannot be undone.
  void accept(TokenId token);
  // slots[i] gets the tokens allowed after the accepted tokens and the first i of `drafts`, which
  // has one element less. After a draft that is not allowed, all tokens are, since a draw there is
  // never kept. Every slot is set eventually.
  void fill(MaskSlots slots, std::vector<TokenId> drafts = {});

 private:
  struct Job {
    std::optional<TokenId> accepted = {};
    MaskSlots slots = {};
    std::vector<TokenId> drafts = {};
  };
  // Kept alive by queued work.
  struct Strand;

  void hand_over(Job job);

  MaskWorker& worker_;
  std::shared_ptr<Strand> strand_;
};

}  // namespace octavo
