// settings.h - the random model and scheduler of a round of scheduler_fuzz. No MLX.
#pragma once

#include <memory>
#include <string>

#include "cache/cache_plan.h"
#include "cache/disk_tier.h"
#include "scheduler/drafter.h"
#include "scheduler/scheduler.h"
#include "scheduler/testing/fake_model.h"
#include "support/random_draws.h"

namespace octavo {

inline constexpr int kFuzzVocab = 13;
inline constexpr TokenId kFuzzStop = 3;

struct FuzzSettings {
  CachePlan plan;
  int pieces;  // of the encoding of an image
  SchedulerOptions scheduler;
};

FuzzSettings random_settings(RandomDraws& draws, int stages);

// Correct and wrong drafts; nullptr: none.
std::unique_ptr<Drafter> random_drafter(RandomDraws& draws, const SchedulerOptions& options,
                                        const FakeModel& model);

// nullptr without a folder or without a prefix cache. Rounds with the same plan find each other's
// pages.
std::unique_ptr<DiskTier> random_disk_tier(RandomDraws& draws, const FuzzSettings& settings,
                                           const std::string& folder, size_t page_bytes);

}  // namespace octavo
