#include "scheduler/mask_worker.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "base/error.h"

namespace octavo {

MaskWorker::~MaskWorker() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    ready_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
}

void MaskWorker::run(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  if (threads_.size() < static_cast<size_t>(most_threads_) && threads_.size() < queue_.size())
    threads_.emplace_back([this] { serve(); });
  ready_.notify_one();
}

void MaskWorker::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    ready_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    work();
    lock.lock();
  }
}

struct ConstrainedAnswer::Strand {
  explicit Strand(std::shared_ptr<const Constraint> of) : constraint(std::move(of)) {}

  // Runs all queued jobs. Never called concurrently.
  void run() {
    std::unique_lock lock(mutex);
    while (!jobs.empty()) {
      const Job job = std::move(jobs.front());
      jobs.pop_front();
      lock.unlock();
      work_off(job);
      lock.lock();
    }
    scheduled = false;
  }

  void work_off(const Job& job) {
    try {
      if (failure.empty()) follow(job);
    } catch (const std::exception& error) {
      failure = error.what();
      if (state) state->failed();
    }
    // Slots that were not reached; each slot is set once.
    for (const auto& slot : job.slots) {
      if (failure.empty()) {
        slot->set({});
      } else {
        slot->fail(failure);
      }
    }
  }

  void follow(const Job& job) {
    if (!state) begin_again();
    if (job.accepted) {
      follow_token(*job.accepted);
      accepted.push_back(*job.accepted);
    }
    if (job.slots.empty()) return;
    job.slots[0]->set(state->allowed());
    int drafted = 0;
    try {
      for (size_t i = 0; i < job.drafts.size() && state->accept(job.drafts[i]); ++i) {
        ++drafted;
        job.slots[i + 1]->set(state->allowed());
      }
      if (drafted > 0) state->take_back(drafted);
    } catch (const std::exception& error) {
      for (const auto& slot : job.slots) slot->fail(error.what());
      begin_again();
    }
  }

  // A failure after a draft does not end the choice, which may continue differently; otherwise it
  // will recur.
  void begin_again() {
    state = constraint->begin();
    for (const TokenId token : accepted) follow_token(token);
  }

  void follow_token(TokenId token) const {
    if (!state->accept(token))
      throw std::runtime_error(fmt::format("token {} does not fit the grammar", token));
  }

  std::mutex mutex;  // guards the next two
  std::deque<Job> jobs;
  bool scheduled = false;
  // The rest is used only by the thread that runs this.
  std::shared_ptr<const Constraint> constraint;
  std::shared_ptr<ConstraintState> state;
  std::vector<TokenId> accepted;
  std::string failure;  // set: no further masks can be computed
};

ConstrainedAnswer::ConstrainedAnswer(MaskWorker& worker,
                                     std::shared_ptr<const Constraint> constraint)
    : worker_(worker), strand_(std::make_shared<Strand>(std::move(constraint))) {}

void ConstrainedAnswer::resume(std::span<const TokenId> tokens,
                               std::shared_ptr<ConstraintState> state) {
  // No job is queued yet, and the queue's mutex makes this visible to the worker.
  strand_->accepted.assign(tokens.begin(), tokens.end());
  strand_->state = std::move(state);
}

void ConstrainedAnswer::accept(TokenId token) { hand_over({.accepted = token}); }

void ConstrainedAnswer::fill(MaskSlots slots, std::vector<TokenId> drafts) {
  OCTAVO_CHECK(slots.size() == drafts.size() + 1);
  hand_over({.slots = std::move(slots), .drafts = std::move(drafts)});
}

void ConstrainedAnswer::hand_over(Job job) {
  {
    const std::lock_guard lock(strand_->mutex);
    strand_->jobs.push_back(std::move(job));
    if (std::exchange(strand_->scheduled, true)) return;
  }
  worker_.run([strand = strand_] { strand->run(); });
}

}  // namespace octavo
