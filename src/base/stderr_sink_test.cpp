#include "base/stderr_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <string>

namespace octavo {
namespace {

using std::chrono::steady_clock;

// The two ends of a pipe or of a socket pair.
class LogChannel {
 public:
  explicit LogChannel(bool socket) {
    const int failed = socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) : ::pipe(ends_);
    if (failed != 0) ends_[0] = ends_[1] = -1;
  }
  ~LogChannel() {
    for (const int end : ends_) ::close(end);
  }
  int writer() const { return ends_[1]; }

  // Everything that has been written so far.
  std::string read_all() const {
    ::fcntl(ends_[0], F_SETFL, O_NONBLOCK);
    std::string text;
    char bytes[4096];
    for (ssize_t count = 0; (count = ::read(ends_[0], bytes, sizeof(bytes))) > 0;)
      text.append(bytes, static_cast<size_t>(count));
    return text;
  }

 private:
  int ends_[2] = {-1, -1};
};

class StderrSinkTest : public testing::TestWithParam<bool> {
 protected:
  StderrSinkTest() : channel_(GetParam()), sink_(channel_.writer()) { sink_.set_pattern("%l %v"); }

  void log(const std::string& text) {
    sink_.log(spdlog::details::log_msg("", spdlog::level::info, text));
  }

  LogChannel channel_;
  StderrSink sink_;
};

TEST_P(StderrSinkTest, WritesLines) {
  log("one");
  log("two");
  EXPECT_EQ(channel_.read_all(), "info one\ninfo two\n");
}

// Half a megabyte, more than either buffer holds.
TEST_P(StderrSinkTest, DropsAndCountsLinesOfAFullPipe) {
  constexpr int kLines = 5000;
  const auto started = steady_clock::now();
  for (int i = 0; i < kLines; ++i) log(fmt::format("{:0100}", i));
  EXPECT_LT(steady_clock::now() - started, std::chrono::seconds(2));
  const std::string before = channel_.read_all();
  const auto written = std::count(before.begin(), before.end(), '\n');
  ASSERT_LT(written, kLines);
  log("again");
  const std::string after = channel_.read_all();
  EXPECT_THAT(after, testing::EndsWith("info again\n"));
  EXPECT_THAT(after, testing::HasSubstr(fmt::format(
                         "warning {} log lines were dropped because stderr was not read\n",
                         kLines - written)));
  log("more");
  EXPECT_EQ(channel_.read_all(), "info more\n");
}

TEST_P(StderrSinkTest, TheFlagsOfTheDescriptorAreNotChanged) {
  log("one");
  EXPECT_EQ(::fcntl(channel_.writer(), F_GETFL) & O_NONBLOCK, 0);
}

INSTANTIATE_TEST_SUITE_P(PipeAndSocket, StderrSinkTest, testing::Bool());

}  // namespace
}  // namespace octavo
