#include "base/stderr_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

namespace octavo {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

// The two ends of a pipe or of a socket pair.
class LogChannel {
 public:
  explicit LogChannel(bool socket) {
    const int failed = socket ? ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_) : ::pipe(ends_);
    if (failed != 0) ends_[0] = ends_[1] = -1;
  }
  ~LogChannel() {
    close_reader();
    ::close(ends_[1]);
  }
  void close_reader() {
    if (ends_[0] >= 0) ::close(ends_[0]);
    ends_[0] = -1;
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
  StderrSinkTest() : channel_(GetParam()), sink_(channel_.writer(), {.patience = 100ms}) {
    sink_.set_pattern("%l %v");
  }

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
  EXPECT_LT(steady_clock::now() - started, 2s);
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

// A reader that pauses loses nothing.
TEST_P(StderrSinkTest, WaitsForAReader) {
  StderrSink patient(channel_.writer());
  patient.set_pattern("%v");
  std::string read;
  std::atomic<bool> done = false;
  std::thread reader([&] {
    while (!done) {
      std::this_thread::sleep_for(20ms);
      read += channel_.read_all();
    }
    read += channel_.read_all();
  });
  std::string logged;
  for (int i = 0; i < 5000; ++i) {
    const std::string line = fmt::format("{:0100}", i);
    patient.log(spdlog::details::log_msg("", spdlog::level::info, line));
    logged += line + "\n";
  }
  done = true;
  reader.join();
  EXPECT_TRUE(read == logged);
}

// At the end of the process, all lines together wait for a second.
TEST_P(StderrSinkTest, HurriesAtTheEnd) {
  StderrSink patient(channel_.writer());
  patient.hurry();
  const auto started = steady_clock::now();
  for (int i = 0; i < 5000; ++i)
    patient.log(spdlog::details::log_msg("", spdlog::level::info, std::string(100, 'x')));
  EXPECT_LT(steady_clock::now() - started, 3s);
}

TEST_P(StderrSinkTest, DoesNotWaitForAReaderThatIsGone) {
  std::signal(SIGPIPE, SIG_IGN);
  StderrSink patient(channel_.writer());
  channel_.close_reader();
  const auto started = steady_clock::now();
  for (int i = 0; i < 10; ++i)
    patient.log(spdlog::details::log_msg("", spdlog::level::info, "text"));
  EXPECT_LT(steady_clock::now() - started, 2s);
}

TEST_P(StderrSinkTest, ReportsLinesThatWereLostBefore) {
  uint64_t lost = 0;
  StderrSink sink(channel_.writer(), {.lost_before = [&] { return lost; }});
  sink.set_pattern("%v");
  lost = 7;
  for (const char* text : {"one", "two"})
    sink.log(spdlog::details::log_msg("", spdlog::level::info, text));
  EXPECT_EQ(channel_.read_all(),
            "7 log lines were dropped because stderr was not read\none\ntwo\n");
}

TEST_P(StderrSinkTest, TheFlagsOfTheDescriptorAreNotChanged) {
  log("one");
  EXPECT_EQ(::fcntl(channel_.writer(), F_GETFL) & O_NONBLOCK, 0);
}

INSTANTIATE_TEST_SUITE_P(PipeAndSocket, StderrSinkTest, testing::Bool());

}  // namespace
}  // namespace octavo
