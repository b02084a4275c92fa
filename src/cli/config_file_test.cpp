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

TEST_F(ConfigFile, IsNotNeeded) {
  EXPECT_THAT(with_config_file({"serve", "m"}), ElementsAre("serve", "m"));
}

}  // namespace
}  // namespace octavo
