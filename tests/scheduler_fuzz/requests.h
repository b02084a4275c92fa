// requests.h - the random requests of a round of scheduler_fuzz. No MLX.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cache/prefix_index.h"
#include "scheduler/adapter.h"
#include "scheduler/request.h"
#include "scheduler/scheduler.h"
#include "scheduler_fuzz/totals.h"
#include "support/random_draws.h"

namespace octavo {

class FuzzRequests {
 public:
  // What it refers to must outlive it.
  FuzzRequests(RandomDraws& draws, const SchedulerOptions& options, FuzzTotals& totals)
      : draws_(draws), options_(options), totals_(totals) {}

  Request next();

  // The number of a new call (Request::call).
  uint64_t new_call() { return next_call_++; }

  // What the fake model takes from the adapter of each namespace that requests may have.
  std::map<CacheNamespace, uint64_t> effects_of_adapters() const;

 private:
  int draw(int low, int high) { return draws_.draw(low, high); }
  bool chance(int percent) { return draws_.chance(percent); }
  std::vector<TokenId> prompt();

  RandomDraws& draws_;
  const SchedulerOptions& options_;
  FuzzTotals& totals_;
  uint64_t next_call_ = 4;
  const std::vector<std::shared_ptr<const Adapter>> adapters_ = make_adapters();

  static std::vector<std::shared_ptr<const Adapter>> make_adapters();
};

}  // namespace octavo
