#include "scheduler/request_shared.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "scheduler/scheduler.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::Pair;

constexpr float kNever = -std::numeric_limits<float>::infinity();

std::shared_ptr<const RequestShared> shared_with(SamplingParams sampling,
                                                 std::vector<TokenId> suppressed) {
  const std::vector<CacheSpec> layers = {SoftmaxSpec{.kv_heads = 1, .k_dim = 8, .v_dim = 8}};
  return share_request(
      1, {.prompt = {1, 2}, .sampling = std::move(sampling)},
      {.max_model_len = 64, .vocab = 50, .suppressed_token_ids = std::move(suppressed)},
      plan_cache(layers, 8));
}

TEST(RequestShared, HasNoRulesUnlessARequestOrTheModelHasThem) {
  EXPECT_EQ(shared_with({}, {})->rules, nullptr);
}

TEST(RequestShared, SuppressedTokensAreNeverDrawnWhateverTheRequestsBias) {
  EXPECT_THAT(shared_with({}, {3, 5})->rules->logit_bias,
              ElementsAre(Pair(3, kNever), Pair(5, kNever)));
  EXPECT_THAT(shared_with({.logit_bias = {{4, 1.0f}, {5, 100.0f}}}, {5})->rules->logit_bias,
              ElementsAre(Pair(4, 1.0f), Pair(5, kNever)));
}

}  // namespace
}  // namespace octavo
