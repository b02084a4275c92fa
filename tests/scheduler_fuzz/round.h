// round.h - one pool and one scheduler of scheduler_fuzz with random settings, driven by random operations.
// No MLX.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "scheduler_fuzz/answers.h"
#include "scheduler_fuzz/page_invariants.h"
#include "scheduler_fuzz/requests.h"
#include "scheduler_fuzz/settings.h"

namespace octavo {

struct FuzzOptions {
  int64_t operations = 1000000;
  unsigned seed = 1;
  int hash_bits = 64;
  int stages = 1;
  std::string disk;
};

class FuzzRound {
 public:
  // What it refers to must outlive it.
  FuzzRound(RandomDraws& draws, const FuzzOptions& options, FuzzTotals& totals);

  // Runs the operations, then steps until the scheduler is idle.
  void run(int operations);

 private:
  int draw(int low, int high) { return draws_.draw(low, high); }
  bool chance(int percent) { return draws_.chance(percent); }
  bool full() const {
    return static_cast<int>(runner_.in_flight().size()) == options_.most_steps();
  }

  void operation();
  void add(Request request, AdmissionOrder::Arrival arrival);
  void add_race();
  void abort();
  void abort_choice(RequestId id, int choice);
  void start();
  void finish();
  void run_dry();
  void check();
  void add_to_totals();

  RandomDraws& draws_;
  FuzzTotals& totals_;
  FuzzSettings settings_;
  const SchedulerOptions& options_ = settings_.scheduler;
  PagePool pool_;
  PrefixCache prefixes_;
  FakeModel model_;
  FakeRunner runner_;
  std::unique_ptr<DiskTier> tier_;
  std::unique_ptr<PrefixDisk> disk_;
  Scheduler scheduler_;
  FuzzRequests requests_{draws_, options_, totals_};
  FuzzOracle oracle_{model_, options_};
  AdmissionOrder admissions_{totals_};
  FuzzAnswers answers_{oracle_, options_, admissions_, totals_};
  RequestId next_id_ = 1;
  std::deque<int> step_rows_;  // in flight
  PageInvariants invariants_;
};

}  // namespace octavo
