#include "front/machine_plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace octavo::front {
namespace {

constexpr uint64_t kGiB = 1ull << 30;

TEST(MachinePlan, TheFrontHasAReserve) {
  EXPECT_EQ(models_budget(10 * kGiB, 0.5), 5 * kGiB - kFrontReserveBytes);
  EXPECT_EQ(models_budget(1000, 0.5), 0);
}

TEST(MachinePlan, TheKvCacheIsLimitedByItsShare) {
  const ChildPlan plan{.fixed_bytes = 2 * kGiB, .kv_bytes = 8 * kGiB, .least_kv_bytes = 1 << 20};
  const ModelMemory memory = plan_model_memory(plan, 20 * kGiB, {.share = 0.1});
  EXPECT_EQ(memory.kv_bytes, 2 * kGiB);
  EXPECT_GT(memory.limit_bytes, 4 * kGiB);
  EXPECT_LT(memory.limit_bytes, 5 * kGiB);
}

TEST(MachinePlan, TakesNoMoreThanTheModelCanUse) {
  const ChildPlan plan{.fixed_bytes = kGiB, .kv_bytes = 1000, .least_kv_bytes = 10};
  EXPECT_EQ(plan_model_memory(plan, 20 * kGiB, {}).kv_bytes, 1000);
}

TEST(MachinePlan, ALargeModelGetsASmallerKvCache) {
  const ChildPlan plan{.fixed_bytes = 9 * kGiB, .kv_bytes = 5 * kGiB, .least_kv_bytes = 1 << 20};
  const ModelMemory memory = plan_model_memory(plan, 11 * kGiB, {.share = 0.5});
  EXPECT_LE(memory.limit_bytes, 11 * kGiB);
  EXPECT_GT(memory.kv_bytes, kGiB / 2);
}

TEST(MachinePlan, AGivenKvCacheAndTheSmallestOneAreKept) {
  const ChildPlan plan{.fixed_bytes = kGiB, .kv_bytes = 6 * kGiB, .least_kv_bytes = 3 * kGiB};
  EXPECT_EQ(plan_model_memory(plan, 4 * kGiB, {.share = 0.1, .is_given = true}).kv_bytes, 6 * kGiB);
  const ModelMemory least = plan_model_memory(plan, 4 * kGiB, {.share = 0.1});
  EXPECT_EQ(least.kv_bytes, 3 * kGiB);
  EXPECT_GT(least.limit_bytes, 4 * kGiB);
}

TEST(MachinePlan, AKeyChangesWithTheFiles) {
  namespace fs = std::filesystem;
  std::string pattern = (fs::temp_directory_path() / "octavo-plan-XXXXXX").string();
  const fs::path folder = ::mkdtemp(pattern.data());
  std::ofstream(folder / "a") << "1";
  const std::string before = files_key(folder);
  EXPECT_EQ(files_key(folder), before);
  std::ofstream(folder / "a") << "22";
  EXPECT_NE(files_key(folder), before);
  EXPECT_NE(files_key(folder / "a"), files_key(folder / "missing"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace octavo::front
