#include "generation/grammar_constraint.h"

#include <time.h>  // NOLINT(modernize-deprecated-headers): POSIX

#include <atomic>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace octavo {
namespace {

// How often a choice looks at the memory of the shared lexer, which takes time to count.
constexpr int kMasksPerCount = 32;
// A call that fails after so long has reached the grammar engine's limit of time.
constexpr TimeStore::Milliseconds kSlowFailure{30};
constexpr const char* kTooSlow =
    "the grammar takes too long per token; simplify it or request fewer choices";

// The processor time of this thread since construction.
class ThreadStopwatch {
 public:
  TimeStore::Milliseconds elapsed() const { return now() - start_; }

 private:
  static TimeStore::Milliseconds now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  }

  TimeStore::Milliseconds start_ = now();
};

// What the choices of a request share.
struct RequestGrammar {
  RequestGrammar(std::unique_ptr<const Grammar> of, GrammarMemory::Charge memory,
                 std::shared_ptr<TimeStore> shared, const MaskTimeOptions& times)
      : grammar(std::move(of)),
        charge(std::move(memory)),
        total(std::move(shared)),
        time(*total, times) {}

  // Throws if the lexer's growth exceeds the memory of all grammars.
  void count_memory() {
    const std::lock_guard lock(mutex);
    if (!charge.grow_to(grammar->bytes()))
      throw std::runtime_error(
          "the grammars of all open requests take too much memory; simplify the grammar or send "
          "fewer requests at once");
  }

  // The mask before the first token, the same for all choices.
  template <typename Compute>
  std::vector<uint32_t> first_mask(Compute compute) {
    const std::lock_guard lock(first_mutex);
    if (!first) first = compute();
    return *first;
  }

  std::unique_ptr<const Grammar> grammar;
  std::mutex mutex;  // guards the charge
  GrammarMemory::Charge charge;
  std::mutex first_mutex;  // guards the next
  std::optional<std::vector<uint32_t>> first;
  std::shared_ptr<TimeStore> total;
  MaskTime time;
  // A choice ended at its limit of time. The request ends with it, so the other choices must not
  // take as long each to fail as well.
  std::atomic<bool> too_slow = false;
};

class GrammarState : public ConstraintState {
 public:
  explicit GrammarState(std::shared_ptr<RequestGrammar> shared)
      : shared_(std::move(shared)), matcher_(shared_->grammar->begin()) {}

  std::vector<uint32_t> allowed() override {
    expect_time();
    return tokens_ == 0 ? shared_->first_mask([&] { return mask(); }) : mask();
  }
  bool accept(TokenId token) override {
    expect_time();
    const ThreadStopwatch watch;
    const bool accepted = timed(watch, [&] { return matcher_->accept(token); });
    // Charged with the next mask. Of several tokens in a row only the last is: the others were
    // drafts, which have been charged, or resumed output, which a text worker follows.
    accepting_ = watch.elapsed();
    if (accepted) ++tokens_;
    return accepted;
  }
  void take_back(int tokens) override {
    matcher_->take_back(tokens);
    tokens_ -= tokens;
  }
  void failed() override {
    if (out_of_time_) shared_->too_slow = true;
  }

 private:
  void expect_time() const {
    if (shared_->too_slow) throw std::runtime_error(kTooSlow);
  }
  std::vector<uint32_t> mask() {
    const ThreadStopwatch watch;
    std::vector<uint32_t> words = timed(watch, [&] { return matcher_->mask(); });
    if (++masks_ % kMasksPerCount == 0) shared_->count_memory();
    const bool enough = shared_->time.charge(accepting_ + watch.elapsed());
    accepting_ = {};
    if (enough) return words;
    out_of_time_ = true;
    throw std::runtime_error(kTooSlow);
  }
  template <typename Work>
  std::invoke_result_t<Work> timed(const ThreadStopwatch& watch, Work work) {
    try {
      return work();
    } catch (...) {
      out_of_time_ = watch.elapsed() > kSlowFailure;
      throw;
    }
  }

  std::shared_ptr<RequestGrammar> shared_;
  std::unique_ptr<GrammarMatcher> matcher_;
  int tokens_ = 0;  // accepted
  int masks_ = 0;
  TimeStore::Milliseconds accepting_{0};
  bool out_of_time_ = false;  // why a call threw; a state is not used after that
};

class GrammarConstraint : public Constraint {
 public:
  explicit GrammarConstraint(std::shared_ptr<RequestGrammar> shared) : shared_(std::move(shared)) {}

  std::unique_ptr<ConstraintState> begin() const override {
    return std::make_unique<GrammarState>(shared_);
  }

 private:
  std::shared_ptr<RequestGrammar> shared_;
};

}  // namespace

std::shared_ptr<const Constraint> grammar_constraint(std::unique_ptr<const Grammar> grammar,
                                                     GrammarMemory::Charge charge,
                                                     std::shared_ptr<TimeStore> total,
                                                     const MaskTimeOptions& times) {
  return std::make_shared<const GrammarConstraint>(std::make_shared<RequestGrammar>(
      std::move(grammar), std::move(charge), std::move(total), times));
}

}  // namespace octavo
