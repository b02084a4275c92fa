#include "front/socket_folder.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace octavo::front {
namespace {

namespace fs = std::filesystem;

class SocketFolderTest : public testing::Test {
 protected:
  SocketFolderTest() {
    if (const char* given = std::getenv("TMPDIR")) before_ = given;
    std::string pattern = "/tmp/octavo-test-XXXXXX";
    root_ = ::mkdtemp(pattern.data());
    ::setenv("TMPDIR", root_.c_str(), 1);
  }
  ~SocketFolderTest() override {
    if (before_.empty()) {
      ::unsetenv("TMPDIR");
    } else {
      ::setenv("TMPDIR", before_.c_str(), 1);
    }
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }

  // Runs `work` in a process that ends as a killed one does: without destructors.
  template <typename Work>
  static void in_killed_process(Work work) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      work();
      ::_exit(0);
    }
    ::waitpid(pid, nullptr, 0);
  }

  int folders() const {
    int count = 0;
    for ([[maybe_unused]] const auto& each : fs::directory_iterator(root_)) ++count;
    return count;
  }

  std::string before_;
  std::string root_;
};

TEST_F(SocketFolderTest, OneThatWasLeftBehindIsRemovedByTheNext) {
  in_killed_process([] {
    auto* folder = new SocketFolder;
    std::ofstream(folder->socket(1)) << "x";
  });
  ASSERT_EQ(folders(), 1);
  const SocketFolder next;
  EXPECT_EQ(folders(), 1);
  EXPECT_TRUE(fs::exists(next.path()));
}

TEST_F(SocketFolderTest, OneThatIsInUseIsKept) {
  const SocketFolder first;
  in_killed_process([] { const SocketFolder other; });
  EXPECT_TRUE(fs::exists(first.path()));
  {
    const SocketFolder second;
    EXPECT_EQ(folders(), 2);
  }
  EXPECT_EQ(folders(), 1);
}

TEST_F(SocketFolderTest, FoldersOfOtherProgramsAreKept) {
  const fs::path open_to_others = fs::path(root_) / "octavo-front-open";
  fs::create_directory(open_to_others);
  fs::permissions(open_to_others, fs::perms::all);
  std::ofstream(open_to_others / "lock") << "";
  const fs::path target = fs::path(root_) / "documents";
  fs::create_directory(target);
  fs::permissions(target, fs::perms::owner_all);
  std::ofstream(target / "lock") << "";
  fs::create_directory_symlink(target, fs::path(root_) / "octavo-front-link");
  const fs::path no_lock = fs::path(root_) / "octavo-front-empty";
  fs::create_directory(no_lock);
  fs::permissions(no_lock, fs::perms::owner_all);
  const SocketFolder folder;
  EXPECT_EQ(folders(), 5);
  EXPECT_TRUE(fs::exists(target / "lock"));
}

}  // namespace
}  // namespace octavo::front
