// oracle.h - computes the answer to a request of scheduler_fuzz from its tokens alone. No MLX.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/constraint.h"
#include "scheduler/request.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_model.h"
#include "support/random_draws.h"

namespace octavo {

// One choice of a request, as far as it is generated.
struct ExpectedAnswer {
  std::vector<TokenId> tokens;  // prompt included
  RowSampling sampling;
  std::unique_ptr<ConstraintState> state;  // with a constraint
  bool ended = false;
};

class FuzzOracle {
 public:
  // What it refers to must outlive it.
  FuzzOracle(const FakeModel& model, const SchedulerOptions& options)
      : model_(model), options_(options) {}

  // The choices of a request before their first token.
  std::vector<ExpectedAnswer> begin(const Request& request) const;

  TokenId next_token(ExpectedAnswer& answer, const Request& request) const;
  static void take(ExpectedAnswer& answer, TokenId token);

  // The embedding of a request that pools.
  std::vector<float> embedding(const Request& request) const;

  // The mask of the next token cannot be computed.
  static bool grammar_fails(const ExpectedAnswer& answer);

  // The constraint of an unfinished answer allows no token.
  static bool allows_nothing(ExpectedAnswer& answer);

  // Makes the request one of which an earlier attempt generated some tokens of each choice.
  void resume(RandomDraws& draws, Request& request, std::vector<ExpectedAnswer>& answers) const;

 private:
  RowSampling sampling_of(const Request& request, int choice) const;
  bool finishes(const ExpectedAnswer& answer, const Request& request) const;

  const FakeModel& model_;
  const SchedulerOptions& options_;
};

}  // namespace octavo
