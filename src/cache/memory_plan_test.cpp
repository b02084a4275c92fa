#include "cache/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

CachePlan small_cache() {  // 16 tokens of one layer: 1 KiB of K and V per token
  return plan_cache(
      std::vector<CacheSpec>(1, SoftmaxSpec{.kv_heads = 2, .k_dim = 128, .v_dim = 128}), 16);
}

MemoryRequest machine(uint64_t mebibytes) {
  return {.device_bytes = mebibytes << 20,
          .memory_fraction = 1,
          .model_context = 4096,
          .max_model_len = std::nullopt,
          .kv_bytes = std::nullopt};
}

std::string error_of(const MemoryRequest& request) {
  try {
    plan_memory(request, small_cache());
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(MemoryPlan, UsesTheModelsContextIfItFits) {
  const MemoryPlan plan = plan_memory(machine(1024), small_cache());
  EXPECT_EQ(plan.max_model_len, 4096);
  EXPECT_EQ(plan.page_count, 256);
  EXPECT_EQ(plan.kv_bytes, 4096u << 10);
  EXPECT_LE(plan.total_bytes(), plan.budget_bytes);
}

TEST(MemoryPlan, OtherwiseUsesTheLargestContextThatFits) {
  const MemoryPlan plan = plan_memory(machine(258), small_cache());  // 2 MiB besides the reserve
  EXPECT_EQ(plan.max_model_len, 2048);
  EXPECT_LE(plan.total_bytes(), plan.budget_bytes);
}

TEST(MemoryPlan, ErrorsNameTheFlagAndAValueThatWorks) {
  MemoryRequest request = machine(258);
  request.max_model_len = 4096;
  EXPECT_THAT(error_of(request), HasSubstr("--max-model-len 2048"));
  request.max_model_len = 2048;
  EXPECT_EQ(plan_memory(request, small_cache()).max_model_len, 2048);

  request = machine(258);
  request.kv_bytes = 64 << 20;
  EXPECT_THAT(error_of(request), HasSubstr("--kv-memory 2MiB"));
  request.kv_bytes = 2 << 20;
  EXPECT_EQ(plan_memory(request, small_cache()).kv_bytes, 2u << 20);
}

TEST(MemoryPlan, NoBufferExceedsTheLimitOfTheDevice) {
  MemoryRequest request = machine(1024);
  request.buffer_bytes = (1 << 20) + 100;  // 64 pages of 16 KiB, and a part of one
  EXPECT_EQ(plan_memory(request, small_cache()).max_model_len, 1024);
  EXPECT_EQ(plan_memory(request, small_cache()).kv_bytes, 1u << 20);

  request.max_model_len = 2048;
  EXPECT_THAT(error_of(request), HasSubstr("1 buffers, none longer than the 1.00 MiB"));
  EXPECT_THAT(error_of(request), HasSubstr("--max-model-len 1024"));

  request.max_model_len = std::nullopt;
  request.kv_bytes = 64 << 20;
  EXPECT_THAT(error_of(request), HasSubstr("--kv-memory 1MiB"));
  request.buffer_bytes = 1ull << 30;
  EXPECT_EQ(plan_memory(request, small_cache()).kv_bytes, 64u << 20);
}

TEST(MemoryPlan, AServerPlansAnEighthForRequests) {
  MemoryRequest request = machine(1024);
  EXPECT_EQ(plan_memory(request, small_cache()).request_bytes, 0u);
  request.serves_requests = true;
  const MemoryPlan plan = plan_memory(request, small_cache());
  EXPECT_EQ(plan.request_bytes, 128u << 20);
  EXPECT_EQ(plan.total_bytes(), plan.request_bytes + plan.reserve_bytes + plan.kv_bytes);
  EXPECT_THAT(plan.table(), HasSubstr("requests"));
  request.device_bytes = 64ull << 30;
  EXPECT_EQ(plan_memory(request, small_cache()).request_bytes, 1u << 30);
}

TEST(MemoryPlan, ALimitReplacesALargerBudget) {
  MemoryRequest request = machine(1024);
  request.limit_bytes = 512u << 20;
  const MemoryPlan plan = plan_memory(request, small_cache());
  EXPECT_EQ(plan.budget_bytes, 512u << 20);
  EXPECT_THAT(plan.table(), HasSubstr("--memory-limit"));
  request.limit_bytes = 2048ull << 20;
  EXPECT_EQ(plan_memory(request, small_cache()).budget_bytes, 1024u << 20);
  request.limit_bytes = 100 << 20;
  EXPECT_THAT(error_of(request), HasSubstr("--memory-limit is 100 MiB; raise it"));
}

TEST(MemoryPlan, ServersPlanTheImagesOfRequests) {
  MemoryRequest request = machine(4096);
  request.image_bytes = 10 << 20;
  EXPECT_EQ(plan_memory(request, small_cache()).image_bytes, 10u << 20);
  request.serves_requests = true;
  const MemoryPlan plan = plan_memory(request, small_cache());
  EXPECT_EQ(plan.image_bytes, (10u << 20) + plan.request_bytes / 16 * 19);
  request.image_bytes = 0;
  EXPECT_EQ(plan_memory(request, small_cache()).image_bytes, 0u);
}

// With the budget, the KV cache of the request fits; with one byte less, it does not.
TEST(MemoryPlan, TheBudgetOfAServerFollowsFromItsOtherMemory) {
  for (const uint64_t weights : {1ull, 100ull << 20, 20ull << 30}) {
    MemoryRequest request = machine(1 << 20);
    request.serves_requests = true;
    request.weights_bytes = weights;
    request.kv_bytes = 4 << 20;
    MemoryPlan plan = plan_memory(request, small_cache());
    request.limit_bytes = server_budget_for(plan.total_bytes() - plan.request_bytes);
    plan = plan_memory(request, small_cache());
    EXPECT_EQ(plan.kv_bytes, 4u << 20);
    EXPECT_LE(plan.total_bytes(), *request.limit_bytes);
    *request.limit_bytes -= 8;
    EXPECT_THAT(error_of(request), HasSubstr("--kv-memory"));
  }
}

TEST(MemoryPlan, SaysTheSmallestKvCacheThatWorks) {
  MemoryRequest request = machine(1024);
  EXPECT_EQ(plan_memory(request, small_cache()).least_kv_bytes, 16u << 10);
  request.max_model_len = 2048;
  EXPECT_EQ(plan_memory(request, small_cache()).least_kv_bytes, 2u << 20);
}

TEST(MemoryPlan, AModelLargerThanTheBudgetNamesARemedy) {
  MemoryRequest request = machine(1024);
  request.weights_bytes = 500 << 20;
  request.memory_fraction = 0.5;
  EXPECT_THAT(error_of(request), HasSubstr("--memory-fraction"));
  request.weights_bytes = 2000 << 20;
  EXPECT_THAT(error_of(request), HasSubstr("smaller or quantised model"));
}

}  // namespace
}  // namespace octavo
