#include "text/helper_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <ranges>
#include <thread>
#include <vector>

#include "base/error.h"
#include "text/chat_template.h"
#include "text/helper_jobs.h"
#include "text/helper_server.h"
#include "text/testing/test_vocab.h"
#include "text/text_helpers.h"

#ifdef __linux__  // the test program is started again as the helper, through /proc/self/exe

namespace octavo {
namespace {

using namespace std::chrono_literals;
using TestClock = std::chrono::steady_clock;
using FailureReason = HelperFailure::Reason;

constexpr const char* kFakeHelper = "fake-text-helper";
constexpr size_t kFakeJobBytes = 64u << 20;

std::string fake_job(std::string_view job) {
  if (job == "spin") {
    while (getppid() > 0) {
    }
  }
  if (job == "sleep") std::this_thread::sleep_for(1h);
  if (job == "exit") std::_Exit(0);
  if (job == "abort") std::abort();
  // A file tells whether it was killed before.
  if (job.starts_with("killed once ") &&
      open(std::string(job.substr(12)).c_str(), O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0)
    kill(getpid(), SIGKILL);
  if (job == "killed") kill(getpid(), SIGKILL);
  if (job == "refuse") throw RequestError(400, "grammar", "is not for me");
  if (job == "descriptor") return fcntl(kHelperSocket + 1, F_GETFD) < 0 ? "closed" : "open";
  if (job == "eat") {
    const std::string eaten(4 * kFakeJobBytes, 'x');
    return std::to_string(eaten.size());
  }
  return "done: " + std::string(job);
}

HelperJob fake_set_up(std::string_view setup) {
  if (setup == "slow") std::this_thread::sleep_for(1h);
  return fake_job;
}

// Before main, so that the main function of all tests need not know about it.
__attribute__((constructor)) void be_a_helper_if_asked(int argc, char** argv) {
  if (argc != 2) return;
  if (std::strcmp(argv[1], kFakeHelper) == 0) std::_Exit(serve_helper(fake_set_up, kFakeJobBytes));
  if (std::strcmp(argv[1], kTextHelperCommand) == 0) std::_Exit(serve_helper_jobs());
}

std::unique_ptr<TextHelpers> fake_helpers(std::vector<std::string> command = {"/proc/self/exe",
                                                                              kFakeHelper}) {
  return std::make_unique<TextHelpers>(
      TextHelperOptions{.command = std::move(command), .setup = [] { return std::string(); }});
}

FailureReason failure_of(TextHelpers& helpers, std::string_view job, HelperLimits limits = {},
                         const std::stop_token& stop = {}) {
  try {
    helpers.run(job, limits, stop);
  } catch (const HelperFailure& failure) {
    return failure.reason();
  }
  ADD_FAILURE() << job << " succeeded";
  return FailureReason::kStopped;
}

TEST(TextHelpers, RunsJobsInOneProcess) {
  const auto helpers = fake_helpers();
  EXPECT_EQ(helpers->run("a", {}), "done: a");
  const auto before = helpers->idle_processes();
  ASSERT_EQ(before.size(), 1u);
  const std::string large(3u << 20, 'b');
  EXPECT_EQ(helpers->run(large, {}), "done: " + large);
  EXPECT_EQ(helpers->run("descriptor", {}), "closed");
  EXPECT_EQ(helpers->idle_processes(), before);
}

TEST(TextHelpers, PassesARefusalOn) {
  const auto helpers = fake_helpers();
  try {
    helpers->run("refuse", {});
    ADD_FAILURE() << "not refused";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.param(), "grammar");
    EXPECT_STREQ(error.what(), "grammar: is not for me");
  }
  EXPECT_EQ(helpers->run("a", {}), "done: a");
}

TEST(TextHelpers, ReplacesAHelperThatExceedsItsTime) {
  const auto helpers = fake_helpers();
  helpers->run("a", {});
  const auto before = helpers->idle_processes();
  EXPECT_EQ(failure_of(*helpers, "spin", {.processor_time = 50ms}), FailureReason::kTooLong);
  EXPECT_EQ(failure_of(*helpers, "sleep", {.elapsed = 50ms}), FailureReason::kTooLong);
  EXPECT_EQ(helpers->run("a", {}), "done: a");
  EXPECT_NE(helpers->idle_processes(), before);
}

TEST(TextHelpers, ReplacesAHelperThatExceedsItsMemoryOrEnds) {
  const auto helpers = fake_helpers();
  EXPECT_EQ(failure_of(*helpers, "eat"), FailureReason::kDied);
  EXPECT_EQ(failure_of(*helpers, "exit"), FailureReason::kDied);
  EXPECT_EQ(failure_of(*helpers, "abort"), FailureReason::kDied);
  EXPECT_EQ(helpers->run("a", {}), "done: a");
}

TEST(TextHelpers, AStopEndsTheJob) {
  const auto helpers = fake_helpers();
  helpers->run("a", {});
  std::stop_source source;
  TestClock::time_point stopped;
  std::thread stopper([&] {
    std::this_thread::sleep_for(100ms);
    stopped = TestClock::now();
    source.request_stop();
  });
  EXPECT_EQ(
      failure_of(*helpers, "sleep", {.processor_time = 1h, .elapsed = 1h}, source.get_token()),
      FailureReason::kStopped);
  const auto returned = TestClock::now();
  stopper.join();
  EXPECT_LT(returned - stopped, 1s);  // 20 ms on a machine with nothing else to do
  EXPECT_EQ(helpers->run("a", {}), "done: a");
}

TEST(TextHelpers, ReplacesAHelperThatDiesWhileIdle) {
  const auto helpers = fake_helpers();
  helpers->run("a", {});
  const auto before = helpers->idle_processes();
  ASSERT_EQ(before.size(), 1u);
  kill(before[0], SIGKILL);
  EXPECT_EQ(helpers->run("b", {}), "done: b");
  EXPECT_NE(helpers->idle_processes(), before);
}

TEST(TextHelpers, ReportsAProgramThatCannotBeStarted) {
  EXPECT_EQ(failure_of(*fake_helpers({"/nowhere/octavo", "a"}), "a"), FailureReason::kUnavailable);
  EXPECT_EQ(failure_of(*fake_helpers({"/bin/true"}), "a"), FailureReason::kUnavailable);
}

TEST(TextHelpers, AJobWhoseHelperIsKilledRunsOnceMore) {
  const auto helpers = fake_helpers();
  const std::string file = testing::TempDir() + "killed_once_" + std::to_string(getpid());
  const std::string job = "killed once " + file;
  EXPECT_EQ(helpers->run(job, {}), "done: " + job);
  EXPECT_EQ(unlink(file.c_str()), 0) << "it was not killed";
  EXPECT_EQ(failure_of(*helpers, "killed"), FailureReason::kUnavailable);
  EXPECT_EQ(helpers->run("a", {}), "done: a");
}

TEST(TextHelpers, AJobOutlivesTheKillOfAllIdleHelpers) {
  TextHelpers helpers({.command = {"/proc/self/exe", kFakeHelper},
                       .setup = [] { return std::string(); },
                       .processes = 3,
                       .start_at_once = true});
  const auto end = TestClock::now() + 20s;
  while (helpers.idle_processes().size() < 3 && TestClock::now() < end)
    std::this_thread::sleep_for(1ms);
  // Stopped, so that they look alive when the job takes them.
  const std::vector<pid_t> killed = helpers.idle_processes();
  for (const pid_t pid : killed) kill(pid, SIGSTOP);
  const std::jthread killer([&] {
    for (const pid_t pid : std::views::reverse(killed)) {  // the last is taken first
      std::this_thread::sleep_for(100ms);
      kill(pid, SIGKILL);
    }
  });
  EXPECT_EQ(helpers.run("a", {}), "done: a");
}

TEST(TextHelpers, AreUnavailableOnlyWhenNoneCanBeStarted) {
  TextHelpers broken({.command = {"/nowhere/octavo", "a"},
                      .setup = [] { return std::string(); },
                      .start_at_once = true,
                      .restart_pause = 1ms});
  const auto end = TestClock::now() + 20s;
  while (broken.available() && TestClock::now() < end) std::this_thread::sleep_for(1ms);
  EXPECT_FALSE(broken.available());
  const auto helpers = fake_helpers();
  EXPECT_TRUE(helpers->available()) << "none was needed yet";
  helpers->run("a", {});
  EXPECT_TRUE(helpers->available());
}

TEST(TextHelpers, EndDuringASetUp) {
  auto helpers =
      std::make_unique<TextHelpers>(TextHelperOptions{.command = {"/proc/self/exe", kFakeHelper},
                                                      .setup = [] { return std::string("slow"); },
                                                      .start_at_once = true});
  std::this_thread::sleep_for(200ms);  // the set-up has begun, and would last for a minute
  const auto begin = TestClock::now();
  helpers.reset();
  EXPECT_LT(TestClock::now() - begin, 10s);
}

TEST(TextHelpers, AProcessEndsWithItsPool) {
  auto helpers = fake_helpers();
  helpers->run("a", {});
  const pid_t pid = helpers->idle_processes().at(0);
  helpers.reset();
  EXPECT_NE(kill(pid, 0), 0);
}

TEST(HelperJobs, AnotherVersionIsRefused) {
  HelperProcess helper({"/proc/self/exe", kTextHelperCommand});
  const HelperReply reply =
      helper.ask(HelperMessage::kSetUp, pack({"0.0.0", "template", ""}), {.elapsed = 20s}, {});
  EXPECT_EQ(reply.outcome, HelperReply::Outcome::kAnswered);
  EXPECT_EQ(reply.kind, HelperMessage::kRefused);
  EXPECT_NE(reply.payload.find("the program was replaced"), std::string::npos) << reply.payload;
}

TEST(HelperJobs, AGrammarIsCompiledOrRefusedAsInThisProcess) {
  const auto helpers = make_grammar_helpers(tokenizer_of(byte_level_vocab()), 300, {258});
  const auto job = [](std::string text) {
    return pack_grammar_job({.kind = GrammarSource::Kind::kRegex, .text = std::move(text)},
                            "field");
  };
  EXPECT_EQ(helpers->run(job("a+"), {}), "");
  try {
    helpers->run(job("(a"), {});
    ADD_FAILURE() << "not refused";
  } catch (const RequestError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_EQ(error.param(), "field");
  }
}

TEST(HelperJobs, ATemplateRendersAsInThisProcess) {
  const ChatTemplateSource source{
      .source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{% endfor %}",
      .tool_use_source = "tools: {{ raise_exception('none of these') }}",
      .bos_token = "<s>"};
  const auto plain = ChatTemplate::from_source(source);
  const auto helped = plain->with_helpers(make_template_helpers(source));
  const auto messages =
      nlohmann::ordered_json::parse(R"([{"role": "user", "content": "h\u00e9"}])");
  EXPECT_EQ(helped->render(messages, {}), plain->render(messages, {}));
  try {
    helped->render(messages, {.tools = nlohmann::ordered_json::array()});
    ADD_FAILURE() << "not raised";
  } catch (const RequestError& error) {
    EXPECT_STREQ(error.what(), "messages: none of these");
  }
}

}  // namespace
}  // namespace octavo

#endif
