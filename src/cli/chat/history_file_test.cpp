#include "cli/chat/history_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace octavo {
namespace {

namespace fs = std::filesystem;

class HistoryFileTest : public testing::Test {
 protected:
  HistoryFileTest() { fs::remove_all(folder_); }
  ~HistoryFileTest() override { fs::remove_all(folder_); }

  fs::path folder_ = fs::temp_directory_path() / ("octavo-history-" + std::to_string(getpid()));
  fs::path path_ = folder_ / "state" / "history";
};

TEST_F(HistoryFileTest, MakesItsFoldersAndIsPrivate) {
  HistoryFile(path_).append("secret");
  EXPECT_EQ(fs::status(path_).permissions() & fs::perms::all,
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(HistoryFileTest, GivesLinesBackAsTheyWere) {
  const HistoryFile file(path_);
  file.append("one");
  file.append("pasted\nwith \\n and \xC3\xA9\\");
  EXPECT_THAT(HistoryFile(path_).load(),
              testing::ElementsAre("one", "pasted\nwith \\n and \xC3\xA9\\"));
}

TEST_F(HistoryFileTest, KeepsTheNewestLines) {
  fs::create_directories(path_.parent_path());
  const size_t written = 2 * HistoryFile::kLines + 5;
  {
    std::ofstream out(path_);
    for (size_t i = 0; i < written; ++i) out << i << '\n';
  }
  const auto lines = HistoryFile(path_).load();
  ASSERT_EQ(lines.size(), HistoryFile::kLines);
  EXPECT_EQ(lines.back(), std::to_string(written - 1));
  std::ifstream in(path_);
  std::string first;
  std::getline(in, first);
  EXPECT_EQ(first, std::to_string(written - HistoryFile::kLines));  // the file was shortened too
}

TEST_F(HistoryFileTest, AnUnwritableFileIsNotAnError) {
  const HistoryFile nowhere("/proc/octavo/history");
  nowhere.append("x");
  EXPECT_TRUE(nowhere.load().empty());
  HistoryFile("").append("x");
  EXPECT_TRUE(HistoryFile("").load().empty());
}

}  // namespace
}  // namespace octavo
