#include "generation/grammar_constraint.h"

#include <time.h>  // NOLINT(modernize-deprecated-headers): POSIX

#include <mutex>
#include <stdexcept>
#include <utility>

namespace octavo {
namespace {

// How often a choice looks at the memory of the shared lexer, which takes time to count.
constexpr int kMasksPerCount = 32;

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

  std::unique_ptr<const Grammar> grammar;
  std::mutex mutex;  // guards the charge
  GrammarMemory::Charge charge;
  std::shared_ptr<TimeStore> total;
  MaskTime time;
};

class GrammarState : public ConstraintState {
 public:
  explicit GrammarState(std::shared_ptr<RequestGrammar> shared)
      : shared_(std::move(shared)), matcher_(shared_->grammar->begin()) {}

  std::vector<uint32_t> allowed() override {
    const ThreadStopwatch watch;
    std::vector<uint32_t> words = matcher_->mask();
    if (++masks_ % kMasksPerCount == 0) shared_->count_memory();
    charge(accepting_ + watch.elapsed());
    accepting_ = {};
    return words;
  }
  bool accept(TokenId token) override {
    const ThreadStopwatch watch;
    const bool accepted = matcher_->accept(token);
    // Charged with the next mask. Of several tokens in a row only the last is: the others were
    // drafts, which have been charged, or resumed output, which a text worker follows.
    accepting_ = watch.elapsed();
    return accepted;
  }
  void take_back(int tokens) override { matcher_->take_back(tokens); }

 private:
  void charge(TimeStore::Milliseconds used) {
    if (!shared_->time.charge(used))
      throw std::runtime_error(
          "the grammar takes too long per token; simplify it or request fewer choices");
  }

  std::shared_ptr<RequestGrammar> shared_;
  std::unique_ptr<GrammarMatcher> matcher_;
  int masks_ = 0;
  TimeStore::Milliseconds accepting_{0};
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
