#include "cli/distributed/line_prefix.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(LinePrefix, NamesEachLine) {
  LinePrefix prefix("[rank 1] ");
  EXPECT_EQ(prefix.add("one\ntw"), "[rank 1] one\n");
  EXPECT_EQ(prefix.add("o\r\n\n"), "[rank 1] two\n[rank 1] \n");
  EXPECT_EQ(prefix.add("end"), "");
  EXPECT_EQ(prefix.rest(), "[rank 1] end\n");
  EXPECT_EQ(prefix.rest(), "");
}

TEST(LinePrefix, LongLinesAreDivided) {
  LinePrefix prefix("");
  const std::string line = prefix.add(std::string(20'000, 'a'));
  EXPECT_EQ(line, std::string(16'384, 'a') + "\n");
  EXPECT_EQ(prefix.rest(), std::string(20'000 - 16'384, 'a') + "\n");
}

TEST(LinePrefix, ControlCharactersAreEscaped) {
  LinePrefix prefix("");
  const std::string line = prefix.add("a\x1b[2Jb\n");
  EXPECT_EQ(line.find('\x1b'), std::string::npos);
  EXPECT_EQ(line.front(), 'a');
}

}  // namespace
}  // namespace octavo
