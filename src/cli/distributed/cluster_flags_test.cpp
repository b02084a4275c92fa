#include "cli/distributed/cluster_flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

constexpr const char* kSecretVariable = "OCTAVO_DISTRIBUTED_SECRET";
constexpr const char* kGoodSecret = "sixteen characters at least";

ClusterFlags parsed_flags(std::vector<std::string> arguments) {
  CLI::App app;
  ClusterFlags flags;
  flags.add_to(app);
  app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  return flags;
}

std::string settings_problem(const std::vector<std::string>& arguments) {
  try {
    parsed_flags(arguments).settings();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

class ClusterFlagsTest : public testing::Test {
 protected:
  ClusterFlagsTest() { ::unsetenv(kSecretVariable); }
  ~ClusterFlagsTest() override { ::unsetenv(kSecretVariable); }
};

TEST_F(ClusterFlagsTest, OffByDefault) {
  const ClusterFlags flags = parsed_flags({});
  EXPECT_FALSE(flags.on());
  EXPECT_EQ(flags.settings().ranks, 1);
  EXPECT_FALSE(parsed_flags({"--pipeline-parallel-size", "1"}).on());
}

TEST_F(ClusterFlagsTest, TheSecretOfTheEnvironmentIsTakenOut) {
  ::setenv(kSecretVariable, kGoodSecret, 1);
  const ClusterSettings settings = parsed_flags({"--pipeline-parallel-size", "3"}).settings();
  EXPECT_EQ(settings.ranks, 3);
  EXPECT_EQ(settings.listen, (NetworkAddress{"127.0.0.1", 0}));
  EXPECT_EQ(settings.secret, kGoodSecret);
  EXPECT_EQ(settings.deadline, std::chrono::milliseconds(5000));
  EXPECT_EQ(std::getenv(kSecretVariable), nullptr);
}

TEST_F(ClusterFlagsTest, MatricesAreDividedInsteadOfLayers) {
  EXPECT_FALSE(parsed_flags({"--tensor-parallel-size", "1"}).on());
  ::setenv(kSecretVariable, kGoodSecret, 1);
  const ClusterFlags flags = parsed_flags({"--tensor-parallel-size", "4"});
  EXPECT_TRUE(flags.on());
  EXPECT_STREQ(flags.size_flag(), "--tensor-parallel-size");
  const ClusterSettings settings = flags.settings();
  EXPECT_EQ(settings.ranks, 4);
  EXPECT_TRUE(settings.tensor);
  EXPECT_EQ(settings.secret, kGoodSecret);

  ::setenv(kSecretVariable, kGoodSecret, 1);
  const ClusterFlags layers =
      parsed_flags({"--tensor-parallel-size", "1", "--pipeline-parallel-size", "2"});
  EXPECT_STREQ(layers.size_flag(), "--pipeline-parallel-size");
  EXPECT_FALSE(layers.settings().tensor);
}

TEST_F(ClusterFlagsTest, LayersAndMatricesAreNotDividedTogether) {
  EXPECT_THAT(settings_problem({"--pipeline-parallel-size", "2", "--tensor-parallel-size", "3"}),
              HasSubstr("--pipeline-parallel-size 2 and --tensor-parallel-size 3 cannot be "
                        "combined; give one of them"));
}

TEST_F(ClusterFlagsTest, ValuesAreRead) {
  ::setenv(kSecretVariable, kGoodSecret, 1);
  const ClusterSettings settings =
      parsed_flags({"--pipeline-parallel-size=2", "--distributed-listen", "10.0.0.1:7000",
                    "--distributed-timeout", "2.5"})
          .settings();
  EXPECT_EQ(settings.listen.text(), "10.0.0.1:7000");
  EXPECT_EQ(settings.deadline, std::chrono::milliseconds(2500));
}

TEST_F(ClusterFlagsTest, SaysWhatIsWrong) {
  EXPECT_THAT(settings_problem({"--pipeline-parallel-size", "2"}),
              HasSubstr("--distributed-secret-file is missing"));
  ::setenv(kSecretVariable, "short", 1);
  EXPECT_THAT(settings_problem({"--pipeline-parallel-size", "2"}),
              HasSubstr("OCTAVO_DISTRIBUTED_SECRET has fewer than 16 characters"));
  EXPECT_THAT(
      settings_problem({"--pipeline-parallel-size", "2", "--distributed-secret-file", "/no"}),
      HasSubstr("--distributed-secret-file: cannot read /no"));
  EXPECT_THAT(settings_problem({"--pipeline-parallel-size", "2", "--distributed-listen", "here"}),
              HasSubstr("--distributed-listen here: write HOST:PORT"));
  EXPECT_THAT(
      settings_problem({"--pipeline-parallel-size", "2", "--distributed-listen", "0.0.0.0:7000"}),
      HasSubstr("not a private address"));
}

TEST_F(ClusterFlagsTest, FlagsWithoutEffectAreRefused) {
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--distributed-listen", "10.0.0.1:1"},
                                             {"--distributed-secret-file", "x"},
                                             {"--distributed-timeout", "5"},
                                             {"--distributed-allow-public"}}) {
    EXPECT_EQ(
        settings_problem(flags),
        flags.front() + " requires --pipeline-parallel-size or --tensor-parallel-size 2 or more");
  }
}

TEST_F(ClusterFlagsTest, NumbersAreChecked) {
  EXPECT_THROW(parsed_flags({"--pipeline-parallel-size", "0"}), CLI::ParseError);
  EXPECT_THROW(parsed_flags({"--pipeline-parallel-size", "65"}), CLI::ParseError);
  EXPECT_THROW(parsed_flags({"--tensor-parallel-size", "0"}), CLI::ParseError);
  EXPECT_THROW(parsed_flags({"--tensor-parallel-size", "65"}), CLI::ParseError);
  EXPECT_THROW(parsed_flags({"--distributed-timeout", "0.1"}), CLI::ParseError);
}

}  // namespace
}  // namespace octavo
