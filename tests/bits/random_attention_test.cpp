// Random batches of bfloat16 attention have the bits of kernels/reference/arithmetic/attention.h on every
// instruction set of this machine, with one thread and with two.
#include <gtest/gtest.h>

#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "base/compute_pool.h"
#include "base/testing/slow_tests.h"
#include "kernels/cpu/isa.h"
#include "kernels/testing/attention_trial.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {
namespace {

TEST(BitsAcrossSets, RandomAttentionEqualsTheReference) {
  const int batches = slow_tests() ? 10'000 : 300;
  std::mt19937 random(29);
  int rows = 0, finite = 0;
  for (int i = 0; i < batches; ++i) {
    AttentionTrial trial(random);
    const std::vector<TrialRow> expected = trial.expected();
    rows += static_cast<int>(expected.size());
    finite += trial.is_finite(expected);
    compute_pool().limit_threads(1 + i % 2);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      ASSERT_EQ(trial.differences(trial.run(), expected), 0)
          << "batch " << i << " on " << cpu::name_of(isa) << ": " << trial.describe();
    }
  }
  compute_pool().limit_threads(1 << 20);
  // Infinities and NaN must not hide differences of most numbers.
  EXPECT_GE(finite, batches / 2);
  EXPECT_LT(finite, batches);
  std::printf(
      "%d batches (%d with finite results only), each on %zu sets: %d rows, no bit differs\n",
      batches, finite, cpu::available_isas().size(), rows);
}

}  // namespace
}  // namespace octavo
