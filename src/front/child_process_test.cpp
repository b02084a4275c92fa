#include "front/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX

#include <boost/asio/local/connect_pair.hpp>
#include <cerrno>

#include "base/error.h"

namespace octavo::front {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

// Runs a script of the shell as the child, until it has ended.
class ChildRun {
 public:
  explicit ChildRun(const std::string& script) {
    ChildCommand command{.program = "/bin/sh", .arguments = {"-c", script}, .name = "model"};
    child = ChildProcess::start(io, std::move(command),
                                {.on_status =
                                     [this](const ChildStatus& status) {
                                       statuses.push_back(status);
                                       if (on_status) on_status();
                                     },
                                 .on_end = [this](const ChildEnd& how) { end = how; }});
  }
  void run() { io.run_for(seconds(20)); }

  boost::asio::io_context io;
  std::shared_ptr<ChildProcess> child;
  std::vector<ChildStatus> statuses;
  std::function<void()> on_status;
  std::optional<ChildEnd> end;
};

TEST(ChildProcess, ReportsStatusLinesAndTheEnd) {
  ChildRun run(R"(echo '{"event":"progress","stage":"load","done":1,"total":4}' >&3
echo nonsense >&3
echo '{"event":"error","message":"bad file"}' >&3
echo 'last words' >&2
exit 7)");
  run.run();
  ASSERT_EQ(run.statuses.size(), 2);
  EXPECT_EQ(std::get<ChildProgress>(run.statuses[0]).total, 4);
  EXPECT_EQ(std::get<ChildError>(run.statuses[1]).message, "bad file");
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->exit_code(), 7);
  EXPECT_EQ(run.end->describe(), "exited with status 7");
  EXPECT_EQ(run.end->last_lines, "last words\n");
}

TEST(ChildProcess, StopEndsItWithSigterm) {
  ChildRun run("echo '{\"event\":\"ready\"}' >&3; read line <&3");
  run.on_status = [&] { run.child->stop(seconds(10)); };
  run.run();
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->exit_code(), 128 + SIGTERM);
}

TEST(ChildProcess, StopKillsItAfterTheLimit) {
  ChildRun run("trap '' TERM; echo '{\"event\":\"ready\"}' >&3; while :; do sleep 0.05; done");
  const auto start = std::chrono::steady_clock::now();
  run.on_status = [&] { run.child->stop(milliseconds(200)); };
  run.run();
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->exit_code(), 128 + SIGKILL);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(10));
}

TEST(ChildProcess, ASignalThatEndsItIsReported) {
  ChildRun run("echo '{\"event\":\"ready\"}' >&3; read line <&3; exit 3");
  run.on_status = [&] { ::kill(run.child->pid(), SIGKILL); };
  run.run();
  ASSERT_TRUE(run.end);
  EXPECT_THAT(run.end->describe(), HasSubstr("signal 9"));
}

TEST(ChildProcess, DestructionKillsIt) {
  pid_t pid = 0;
  {
    ChildRun run("echo '{\"event\":\"ready\"}' >&3; trap '' TERM; while :; do sleep 0.05; done");
    pid = run.child->pid();
    run.io.run_one_for(seconds(10));
    run.child.reset();
  }
  EXPECT_NE(::kill(pid, 0), 0);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcess, HasNoOtherDescriptorsAndNoApiKey) {
  ::setenv("OCTAVO_API_KEY", "secret", 1);
  boost::asio::io_context io;
  boost::asio::local::stream_protocol::socket a(io), b(io);
  boost::asio::local::connect_pair(a, b);
  ChildRun run(
      "for fd in 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do "
      "if [ -e /dev/fd/$fd ]; then echo open $fd >&2; fi; done; "
      "echo key=$OCTAVO_API_KEY >&2");
  run.run();
  ::unsetenv("OCTAVO_API_KEY");
  ASSERT_TRUE(run.end);
  EXPECT_EQ(run.end->last_lines, "key=\n");
}

TEST(ChildProcess, AMissingProgramIsAnError) {
  boost::asio::io_context io;
  EXPECT_THROW(ChildProcess::start(io, {.program = "/no/such/program"}, {}), SetupError);
}

TEST(ChildStatus, LinesAreReadAsTheyWereWritten) {
  const ChildPlan plan{.path = "/m/\"x\"\n", .budget_bytes = 5, .fixed_bytes = 1ull << 50};
  const auto read = parse_status(status_line(plan));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<ChildPlan>(*read).path, plan.path);
  EXPECT_EQ(std::get<ChildPlan>(*read).fixed_bytes, plan.fixed_bytes);
  for (const char* text : {"", "{", "[]", "{}", "{\"event\": 3}", "{\"event\": \"other\"}"})
    EXPECT_FALSE(parse_status(text)) << text;
  EXPECT_EQ(
      std::get<ChildProgress>(*parse_status(R"({"event": "progress", "done": -1, "total": "x"})"))
          .total,
      0);
}

}  // namespace
}  // namespace octavo::front
