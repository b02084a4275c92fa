#include "cli/config_file.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace octavo {
namespace {

using testing::ElementsAre;

class ConfigFile : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }
  void TearDown() override { std::filesystem::remove(path_); }

 private:
  std::string path_ = testing::TempDir() + "octavo_config_test.toml";
};

TEST_F(ConfigFile, BecomesFlags) {
  const std::string path =
      write("# a comment\nport = 9000\nlog-format = \"json\"\naccess-log = false\n");
  EXPECT_THAT(with_config_file({"serve", "m", "--config", path}),
              ElementsAre("serve", "m", "--port=9000", "--log-format=json", "--access-log=false"));
}

TEST_F(ConfigFile, GivesListsOneByOne) {
  const std::string path = write("served-model-name = [\"a\", \"b\"]\n");
  EXPECT_THAT(with_config_file({"serve", "--config=" + path}),
              ElementsAre("serve", "--served-model-name=a", "--served-model-name=b"));
}

TEST_F(ConfigFile, YieldsToTheCommandLine) {
  const std::string path = write("port = 9000\nmax-num-seqs = 4\n");
  EXPECT_THAT(with_config_file({"serve", "--port", "1", "--config", path}),
              ElementsAre("serve", "--port", "1", "--max-num-seqs=4"));
}

TEST_F(ConfigFile, SaysWhatIsWrong) {
  EXPECT_THROW(with_config_file({"serve", "--config", "/nowhere.toml"}), SetupError);
  EXPECT_THROW(with_config_file({"serve", "--config"}), SetupError);
  EXPECT_THROW(with_config_file({"serve", "--config", write("[serve]\nport = 1\n")}), SetupError);
}

TEST_F(ConfigFile, SaysWhichLineIsWrongAndWhatToWrite) {
  const auto problem = [&](const std::string& text) -> std::string {
    try {
      with_config_file({"serve", "--config", write(text)});
    } catch (const SetupError& error) {
      return error.what();
    }
    return "none";
  };
  using testing::HasSubstr;
  EXPECT_THAT(problem("# YAML\nport: 9000\n"),
              HasSubstr("line 2: \"port: 9000\" is not NAME = VALUE; write port = 9000"));
  EXPECT_THAT(problem("--port 9000\n"), HasSubstr("line 1: \"--port 9000\""));
  EXPECT_THAT(problem("--port = 9000\n"), HasSubstr("write port = 9000"));
  EXPECT_THAT(problem("no-access-log\n"), HasSubstr("write no-access-log = true"));
  EXPECT_THAT(problem("port =\n"), HasSubstr("line 1"));
  EXPECT_THAT(problem("host = \"::1\n"), HasSubstr("closing quote"));
  EXPECT_THAT(problem("port = 1\n[serve]\n"), HasSubstr("line 2: sections"));
  EXPECT_THAT(problem("allowed-hosts = [\"a\",\n  \"b\"]\nport = 1\n"), "none");
}

TEST_F(ConfigFile, IsNotNeeded) {
  EXPECT_THAT(with_config_file({"serve", "m"}), ElementsAre("serve", "m"));
}

}  // namespace
}  // namespace octavo
