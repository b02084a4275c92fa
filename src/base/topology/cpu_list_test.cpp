#include "base/topology/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

TEST(CpuList, RangesAndSingleIdsAreRead) {
  EXPECT_THAT(parse_cpu_list("0-3,8,96-97\n"), Optional(ElementsAre(0, 1, 2, 3, 8, 96, 97)));
  EXPECT_THAT(parse_cpu_list("7"), Optional(ElementsAre(7)));
  EXPECT_THAT(parse_cpu_list(" \n"), Optional(IsEmpty()));
}

TEST(CpuList, IdsAreSortedAndUnique) {
  EXPECT_THAT(parse_cpu_list("4,0-2,1-2"), Optional(ElementsAre(0, 1, 2, 4)));
}

TEST(CpuList, AnythingElseIsRejected) {
  for (const char* text : {"a", "0-", "-1", "3-1", "0,,1", "0,", ",0", "0-4294967295", "8192",
                           "0 1", "0-1-2", "1e3", "0x3"}) {
    EXPECT_FALSE(parse_cpu_list(text)) << text;
  }
}

TEST(CpuList, CommonCpusAreInBothLists) {
  EXPECT_THAT(common_cpus({0, 1, 5}, {1, 2, 5}), ElementsAre(1, 5));
}

}  // namespace
}  // namespace octavo
