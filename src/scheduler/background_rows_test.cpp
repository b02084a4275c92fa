#include "scheduler/background_rows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace octavo {
namespace {

// A machine on which a step of `rows` rows takes 1 + cost * (rows - 1) seconds.
struct Machine {
  double cost;
  double slowest = 0;  // of the steps since it was last set to 0

  // Runs steps of one other row and as many background rows as allowed. Returns these.
  int run(BackgroundRows& rows, int steps) {
    int total = 0;
    for (int i = 0; i < steps; ++i) {
      const int background = rows.next_limit();
      const double seconds = 1 + cost * background;
      slowest = std::max(slowest, seconds);
      rows.observe({.rows = 1, .background_rows = background}, seconds);
      total += background;
    }
    return total;
  }
};

TEST(BackgroundRows, TheFirstStepIsMeasuredWithoutThem) {
  BackgroundRows rows;
  EXPECT_EQ(rows.next_limit(), 0);
  rows.observe({.rows = 1}, 1.0);
  EXPECT_EQ(rows.next_limit(), 1);
}

TEST(BackgroundRows, GrowWhileStepsTakeLittleLonger) {
  BackgroundRows rows;
  Machine cheap{.cost = 0.01};
  cheap.run(rows, 1000);
  EXPECT_GE(cheap.run(rows, 32), 10 * 31);
  EXPECT_LE(cheap.slowest, 1.25);
}

TEST(BackgroundRows, ExpensiveRowsRunInLessThanOneStepOfAHundred) {
  BackgroundRows rows;
  Machine slow{.cost = 0.9};
  slow.run(rows, 10);
  const int background = slow.run(rows, 12800);
  EXPECT_GT(background, 0) << "otherwise it is not noticed when rows become cheap";
  EXPECT_LE(background, 128);
}

TEST(BackgroundRows, ShrinkWhenRowsBecomeExpensive) {
  BackgroundRows rows;
  Machine machine{.cost = 0.005};
  machine.run(rows, 1000);
  machine.cost = 0.1;
  machine.run(rows, 10);
  machine.slowest = 0;
  machine.run(rows, 1000);
  EXPECT_LE(machine.slowest, 1.31);
}

TEST(BackgroundRows, StepsWithPromptsAreNotMeasured) {
  BackgroundRows rows;
  rows.observe({.rows = 500, .prefills = true}, 1.0);
  EXPECT_EQ(rows.next_limit(), 0);
}

}  // namespace
}  // namespace octavo
