#include "kernels/cpu/isa.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <thread>

#include "base/compute_pool.h"

namespace octavo {
namespace {

// On a thread of its own, because the state stays set. A thread inherits its creator's state.
template <typename Body>
void on_new_thread(Body body) {
  std::thread([&] {
    std::fesetenv(FE_DFL_ENV);
    body();
  }).join();
}

TEST(FloatState, DenormalInputsAndResultsAreZero) {
  on_new_thread([] {
    volatile float smallest = 1.17549435e-38f, denormal = 1e-40f, half = 0.5f, large = 1e30f;
    EXPECT_NE(smallest * half, 0.0f);
    EXPECT_NE(denormal * large, 0.0f);
    EXPECT_FALSE(cpu::has_float_state());
    cpu::set_float_state();
    EXPECT_TRUE(cpu::has_float_state());
    EXPECT_EQ(smallest * half, 0.0f);
    EXPECT_EQ(denormal * large, 0.0f);
  });
}

TEST(FloatState, IsSetAgainIfALibraryChangedIt) {
  on_new_thread([] {
    cpu::prepare_thread();
    volatile float three = 3;
    volatile float inexact = 1 / three;  // sets an exception flag, which is not part of the state
    EXPECT_GT(inexact, 0.0f);
    EXPECT_TRUE(cpu::has_float_state());
    std::fesetround(FE_UPWARD);
    EXPECT_FALSE(cpu::has_float_state());
    cpu::prepare_thread();
    EXPECT_TRUE(cpu::has_float_state());
  });
}

TEST(FloatState, EveryThreadOfThePoolHasItAfterPreparation) {
  ComputePool pool(3);
  std::atomic<int> with_state{0};
  on_new_thread([&] {
    pool.parallel_for(300, 1, [&](int64_t, int64_t) {
      cpu::prepare_thread();
      with_state += cpu::has_float_state() ? 1 : 0;
    });
  });
  EXPECT_EQ(with_state, 300);
}

}  // namespace
}  // namespace octavo
