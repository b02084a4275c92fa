#include "cli/distributed/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "base/error.h"

namespace octavo {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

LaunchSettings two_hosts() {
  LaunchSettings settings;
  settings.model = "qwen3-4b";
  settings.hosts.hosts = {{.ssh = "mac-1", .ips = {"10.0.0.1"}},
                          {.ssh = "me@mac-2", .ips = {"10.0.0.2", "10.1.0.2"}}};
  settings.listen = {"10.0.0.1", 7000};
  settings.program = "/opt/octavo";
  return settings;
}

// What a POSIX shell prints for a command.
std::string shell_output(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  std::array<char, 256> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) text += buffer.data();
  ::pclose(pipe);
  return text;
}

TEST(LaunchPlan, RankZeroServesHereWithTheFlagsGiven) {
  LaunchSettings settings = two_hosts();
  settings.flags = {{"--port", "9000"}, {"--access-log", "false"}};
  const auto commands = plan_launch(settings);
  ASSERT_EQ(commands.size(), 2u);
  EXPECT_EQ(commands[0].name, "rank 0");
  EXPECT_THAT(commands[0].words,
              ElementsAre("/opt/octavo", "serve", "qwen3-4b", "--port=9000", "--access-log=false",
                          "--pipeline-parallel-size=2", "--distributed-listen=10.0.0.1:7000",
                          "--end-with-stdin"));
  EXPECT_FALSE(commands[0].reads_secret);
}

TEST(LaunchPlan, MatricesAreDividedOverAsManyRanksAsThereAreHosts) {
  LaunchSettings settings = two_hosts();
  settings.tensor_parallel_size = 2;
  const auto commands = plan_launch(settings);
  EXPECT_THAT(commands[0].words,
              ElementsAre("/opt/octavo", "serve", "qwen3-4b", "--tensor-parallel-size=2",
                          "--distributed-listen=10.0.0.1:7000", "--end-with-stdin"));
  for (const std::string& word : commands[1].words) EXPECT_THAT(word, Not(HasSubstr("parallel")));
  for (const int wrong : {1, 3}) {
    settings.tensor_parallel_size = wrong;
    try {
      plan_launch(settings);
      ADD_FAILURE() << wrong;
    } catch (const SetupError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--tensor-parallel-size " + std::to_string(wrong) +
                                          ": there are 2 ranks"));
    }
  }
}

TEST(LaunchPlan, OtherHostsAreReachedBySsh) {
  LaunchSettings settings = two_hosts();
  settings.hosts.environment = {{"OCTAVO_THREADS", "4"}};
  const RankCommand command = plan_launch(settings)[1];
  EXPECT_EQ(command.name, "rank 1 (me@mac-2)");
  EXPECT_TRUE(command.reads_secret);
  EXPECT_THAT(command.environment, IsEmpty());
  ASSERT_GE(command.words.size(), 2u);
  EXPECT_EQ(command.words.front(), "ssh");
  EXPECT_EQ(command.words[command.words.size() - 2], "me@mac-2");
  EXPECT_THAT(command.words, Contains("BatchMode=yes"));
  const std::string& script = command.words.back();
  EXPECT_THAT(script, HasSubstr("worker"));
  EXPECT_THAT(script, HasSubstr("--connect=10.0.0.1:7000"));
  EXPECT_THAT(script, HasSubstr("--listen=10.0.0.2"));
  EXPECT_THAT(script, HasSubstr("OCTAVO_THREADS="));
}

TEST(LaunchPlan, RanksOnThisMachineNeedNoSsh) {
  LaunchSettings settings = two_hosts();
  settings.hosts = local_hosts(3);
  settings.hosts.environment = {{"A", "b"}};
  const auto commands = plan_launch(settings);
  ASSERT_EQ(commands.size(), 3u);
  EXPECT_THAT(commands[2].words,
              ElementsAre("/opt/octavo", "worker", "qwen3-4b", "--connect=10.0.0.1:7000",
                          "--rank=2", "--listen=127.0.0.1"));
  EXPECT_THAT(commands[2].environment, ElementsAre(Pair("A", "b")));
  EXPECT_FALSE(commands[2].reads_secret);
}

TEST(LaunchPlan, WorkersGetTheFlagsThatConcernThem) {
  LaunchSettings settings = two_hosts();
  settings.hosts = local_hosts(2);
  settings.flags = {{"--threads", "2"}, {"--port", "1"}, {"--memory-limit", "4GiB"}};
  const auto words = plan_launch(settings)[1].words;
  EXPECT_THAT(words, Contains("--threads=2"));
  EXPECT_THAT(words, Contains("--memory-limit=4GiB"));
  EXPECT_THAT(words, Not(Contains("--port=1")));
}

TEST(LaunchPlan, AHostWithoutAnAddressIsNamed) {
  LaunchSettings settings = two_hosts();
  settings.hosts.hosts[1].ips.clear();
  EXPECT_THROW(plan_launch(settings), SetupError);
}

TEST(LaunchPlan, ShellsReadQuotedWordsAsTheyWere) {
  for (const char* word : {"plain", "two words", "it's", "$HOME `id` \"x\" \\ ;&|<>*?!", "", "''"})
    EXPECT_EQ(shell_output("printf %s " + shell_quoted(word)), word);
}

TEST(LaunchPlan, TheRemoteScriptReadsTheSecretFromStdin) {
  const std::string program = "printf '%s' \"$OCTAVO_DISTRIBUTED_SECRET $A $1\"";
  const auto words = ssh_words("host", {"sh", "-c", program, "name", "it's"}, {{"A", "b c"}});
  // What sshd does: the login shell runs the last word.
  EXPECT_EQ(shell_output("echo 'the  secret ' | sh -c " + shell_quoted(words.back())),
            "the  secret  b c it's");
  for (const std::string& word : words) EXPECT_THAT(word, Not(HasSubstr("the  secret")));
}

}  // namespace
}  // namespace octavo
