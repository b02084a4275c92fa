#include "cli/distributed/spawned_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <unistd.h>

#include <array>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

int wait_for_end(SpawnedProcess& process) {
  for (int i = 0; i < 2000; ++i) {
    if (const auto code = process.exit_code()) return *code;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return -1;
}

std::string output_of_process(const SpawnedProcess& process) {
  std::string text;
  std::array<char, 256> buffer{};
  ssize_t got = 0;
  while ((got = ::read(process.output(), buffer.data(), buffer.size())) > 0)
    text.append(buffer.data(), static_cast<size_t>(got));
  return text;
}

SpawnOptions shell_process(const std::string& script) {
  return {.words = {"sh", "-c", script}, .pipe_output = true};
}

TEST(SpawnedProcess, HasPipesAndAnEnvironment) {
  SpawnOptions options = shell_process("read line; echo \"$line $A\"; echo problem >&2; exit 3");
  options.environment = {{"A", "b c"}};
  SpawnedProcess process(options);
  process.write_input("hello\n");
  EXPECT_EQ(output_of_process(process), "hello b c\nproblem\n");
  EXPECT_EQ(wait_for_end(process), 3);
}

TEST(SpawnedProcess, SeesTheEndOfItsInput) {
  SpawnedProcess process(shell_process("cat; echo end"));
  process.close_input();
  EXPECT_EQ(output_of_process(process), "end\n");
  EXPECT_EQ(wait_for_end(process), 0);
}

TEST(SpawnedProcess, ReportsTheSignalThatEndedIt) {
  SpawnedProcess process(shell_process("sleep 100"));
  EXPECT_EQ(process.exit_code(), std::nullopt);
  process.send_signal(SIGTERM);
  EXPECT_EQ(wait_for_end(process), 128 + SIGTERM);
}

TEST(SpawnedProcess, IsKilledByTheDestructor) {
  pid_t pid = -1;
  {
    const SpawnedProcess process(shell_process("trap '' TERM; echo ready; sleep 100 & wait"));
    pid = process.pid();
    std::array<char, 6> ready{};
    ASSERT_EQ(::read(process.output(), ready.data(), ready.size()), 6);
    EXPECT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

TEST(SpawnedProcess, AMovedOneIsNotKilledTwice) {
  std::vector<SpawnedProcess> processes;
  processes.emplace_back(shell_process("read line"));
  processes.emplace_back(shell_process("read line"));
  for (SpawnedProcess& process : processes) {
    EXPECT_EQ(process.exit_code(), std::nullopt);
    process.write_input("x\n");
    EXPECT_EQ(wait_for_end(process), 0);
  }
}

TEST(SpawnedProcess, AProgramThatDoesNotExistIsNamed) {
  try {
    const SpawnedProcess process({.words = {"/no/such/program"}});
    FAIL();
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot start /no/such/program: No such file"));
  }
}

}  // namespace
}  // namespace octavo
