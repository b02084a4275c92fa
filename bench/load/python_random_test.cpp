#include "bench/load/python_random.h"

#include <gmock/gmock.h>

#include <numeric>

namespace octavo::bench {
namespace {

using testing::ElementsAre;

std::vector<int> shuffled(uint64_t seed, int count) {
  std::vector<int> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  PythonRandom(seed).shuffle(values);
  return values;
}

// Expected values were printed by Python 3.11.
TEST(PythonRandom, GivesThePythonBits) {
  PythonRandom random(0);
  EXPECT_EQ(random.next(), 3626764237u);
  EXPECT_EQ(random.next(), 1654615998u);
  EXPECT_EQ(random.next(), 3255389356u);
}

TEST(PythonRandom, ShufflesAsPythonDoes) {
  EXPECT_THAT(shuffled(0, 20),
              ElementsAre(10, 18, 16, 14, 0, 17, 11, 2, 3, 9, 5, 7, 4, 19, 6, 15, 8, 1, 13, 12));
  EXPECT_THAT(shuffled(42, 20),
              ElementsAre(19, 5, 14, 4, 9, 13, 15, 18, 6, 12, 17, 10, 1, 11, 2, 16, 7, 8, 0, 3));
}

TEST(PythonRandom, SeedsOver32BitsHaveTwoWords) {
  EXPECT_THAT(shuffled((uint64_t{1} << 40) + 7, 20),
              ElementsAre(17, 0, 10, 3, 1, 2, 9, 12, 7, 13, 5, 11, 14, 6, 16, 4, 8, 15, 18, 19));
}

TEST(PythonRandom, ShufflesShortLists) {
  EXPECT_THAT(shuffled(1, 0), ElementsAre());
  EXPECT_THAT(shuffled(1, 1), ElementsAre(0));
}

}  // namespace
}  // namespace octavo::bench
