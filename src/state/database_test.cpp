#include "state/database.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/error.h"
#include "state/testing/state_folder.h"

namespace octavo::state {
namespace {

using testing::HasSubstr;

class DatabaseTest : public testing::Test {
 protected:
  std::string file() const { return folder_.path() + "/octavo.sqlite3"; }
  void expect_refused(const char* reason) {
    try {
      const Database database(folder_.path());
      FAIL() << "opened";
    } catch (const SetupError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--state-dir"));
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }
  StateFolder folder_;
};

TEST_F(DatabaseTest, OtherUsersCannotReadIt) {
  std::filesystem::permissions(folder_.path(), std::filesystem::perms{0755});
  const Database database(folder_.path());
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms{0600}) << entry.path();
}

TEST_F(DatabaseTest, AFileWrittenWithOtherPermissionsBecomesPrivate) {
  { const Database database(folder_.path()); }
  std::filesystem::permissions(file(), std::filesystem::perms{0644});
  const Database database(folder_.path());
  EXPECT_EQ(std::filesystem::status(file()).permissions(), std::filesystem::perms{0600});
}

TEST_F(DatabaseTest, ALinkIsRefused) {
  std::filesystem::create_symlink(folder_.path() + "/elsewhere", file());
  expect_refused("is a symbolic link");
}

TEST_F(DatabaseTest, KeepsWhatWasWritten) {
  { Database(folder_.path()).connection().run("CREATE TABLE extra AS SELECT 7"); }
  const Database again(folder_.path());
  EXPECT_EQ(again.connection().integer("SELECT * FROM extra"), 7);
  EXPECT_EQ(again.connection().integer("PRAGMA user_version"), schema_version());
  EXPECT_EQ(again.connection().text("PRAGMA journal_mode"), "wal");
}

TEST_F(DatabaseTest, OneProcessAtATime) {
  const Database database(folder_.path());
  expect_refused("another process uses it");
}

TEST_F(DatabaseTest, ANewerVersionIsRefused) {
  { Database(folder_.path()).connection().run("PRAGMA user_version = 1000"); }
  expect_refused("a newer Octavo wrote");
}

TEST_F(DatabaseTest, AFileOfAnotherProgramIsRefused) {
  Connection(file()).run("CREATE TABLE theirs(x)");
  expect_refused("was not written by Octavo");
}

TEST_F(DatabaseTest, AFileThatIsNoDatabaseIsRefused) {
  std::ofstream(file()) << std::string(8192, 'x');
  expect_refused("damaged");
}

TEST_F(DatabaseTest, DamagedBytesAreRefusedOrHarmless) {
  { const Database database(folder_.path()); }
  std::ifstream whole(file(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(whole), {}};
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 100; ++i) {
    std::string changed = bytes;
    for (int k = 0; k < 64; ++k) changed[random() % changed.size()] = static_cast<char>(random());
    std::ofstream(file(), std::ios::binary) << changed;
    try {
      const Database database(folder_.path());
    } catch (const SetupError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
}

TEST_F(DatabaseTest, AFolderThatCannotBeMadeIsRefused) {
  std::ofstream(folder_.path() + "/file") << "x";
  EXPECT_THROW(Database(folder_.path() + "/file/state"), SetupError);
}

TEST_F(DatabaseTest, ATransactionThatIsNotCommittedIsUndone) {
  const Database database(folder_.path());
  {
    const Transaction transaction(database.connection());
    database.connection().run("CREATE TABLE extra(x)");
  }
  EXPECT_EQ(
      database.connection().integer("SELECT count(*) FROM sqlite_schema WHERE name = 'extra'"), 0);
}

TEST_F(DatabaseTest, AFullFileIsAnErrorAndTheNextWriteWorks) {
  const Database database(folder_.path());
  const Connection& connection = database.connection();
  connection.run("PRAGMA max_page_count = 64");
  connection.run("CREATE TABLE extra(x)");
  try {
    connection.run("INSERT INTO extra VALUES(zeroblob(1000000))");
    FAIL() << "written";
  } catch (const StateError& error) {
    EXPECT_EQ(error.fault(), StateFault::kFull);
  }
  connection.run("INSERT INTO extra VALUES(1)");
  EXPECT_EQ(connection.integer("SELECT x FROM extra"), 1);
}

}  // namespace
}  // namespace octavo::state
