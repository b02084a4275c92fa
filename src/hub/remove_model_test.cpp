#include "hub/remove_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

void write(const fs::path& path) {
  fs::create_directories(path.parent_path());
  std::ofstream(path) << "bytes";
}

void link(const fs::path& target, const fs::path& link) {
  fs::create_directories(link.parent_path());
  fs::create_symlink(target, link);
}

// A cache with one repository in the layout of huggingface_hub, and a folder outside it.
class RemoveModel : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "octavo_remove_XXXXXX").string();
    root_ = ::mkdtemp(name.data());
    settings_.cache = root_ / "hub";
    repo_ = settings_.cache / "models--org--tiny";
    snapshot_ = repo_ / "snapshots" / "c0ffee";
    for (const char* hash : {"aa", "bb"}) write(repo_ / "blobs" / hash);
    link("../../blobs/aa", snapshot_ / "model.safetensors");
    link("../../../blobs/bb", snapshot_ / "1_Pooling" / "config.json");
    write(repo_ / "refs" / "main");
    std::ofstream(repo_ / "refs" / "main") << "c0ffee";
    write(settings_.cache / ".locks" / "models--org--tiny" / "aa.lock");
    write(outside_file());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path outside() const { return root_ / "outside"; }
  fs::path outside_file() const { return outside() / "folder" / "precious.safetensors"; }

  void remove() { remove_planned(plan_removal("org/tiny", settings_)); }
  // Moves `folder` out of the cache and leaves a link in its place.
  void move_out(const fs::path& folder) {
    const fs::path moved = outside() / folder.filename();
    fs::rename(folder, moved);
    fs::create_directory_symlink(moved, folder);
  }
  size_t files_outside() const {
    size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(outside()))
      count += entry.is_directory() ? 0 : 1;
    return count;
  }

  fs::path root_, repo_, snapshot_;
  HubSettings settings_;
};

TEST_F(RemoveModel, TakesAWholeRepositoryWithItsLocks) {
  remove();
  EXPECT_FALSE(fs::exists(repo_));
  EXPECT_FALSE(fs::exists(settings_.cache / ".locks" / "models--org--tiny"));
  EXPECT_TRUE(fs::exists(settings_.cache));
}

TEST_F(RemoveModel, FollowsALinkedCacheFolder) {
  fs::rename(settings_.cache, root_ / "disk");
  fs::create_directory_symlink(root_ / "disk", settings_.cache);
  remove();
  EXPECT_FALSE(fs::exists(repo_));
}

TEST_F(RemoveModel, RefusesASnapshotThatIsALink) {
  fs::create_directory_symlink(outside() / "folder", repo_ / "snapshots" / "deadbeef");
  try {
    remove();
    FAIL() << "removed through a link";
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("deadbeef is a symbolic link"));
  }
  EXPECT_TRUE(fs::exists(outside_file()));
  EXPECT_TRUE(fs::exists(snapshot_ / "model.safetensors"));
}

TEST_F(RemoveModel, RefusesEveryFolderThatIsALink) {
  const fs::path locks = settings_.cache / ".locks";
  for (const fs::path& folder : {snapshot_, repo_ / "snapshots", repo_ / "blobs", repo_ / "refs",
                                 locks / "models--org--tiny", locks, repo_}) {
    move_out(folder);
    const size_t before = files_outside();
    EXPECT_THROW(remove(), SetupError) << folder;
    EXPECT_EQ(files_outside(), before) << folder;
    fs::remove(folder);
    fs::rename(outside() / folder.filename(), folder);
  }
  remove();
  EXPECT_FALSE(fs::exists(repo_));
}

TEST_F(RemoveModel, RemovesLinksInASnapshotWithoutFollowingThem) {
  fs::create_symlink(outside_file(), snapshot_ / "other.safetensors");
  fs::create_directory_symlink(outside() / "folder", snapshot_ / "folder");
  fs::create_symlink("../../blobs/.", snapshot_ / "odd");
  remove();
  EXPECT_FALSE(fs::exists(repo_));
  EXPECT_TRUE(fs::exists(outside_file()));
}

TEST_F(RemoveModel, RefusesAFolderThatBecameALinkAfterThePlan) {
  const Removal removal = plan_removal("org/tiny", settings_);
  move_out(snapshot_ / "1_Pooling");
  EXPECT_THROW(remove_planned(removal), SetupError);
  EXPECT_TRUE(fs::is_symlink(outside() / "1_Pooling" / "config.json"));
  EXPECT_TRUE(fs::exists(snapshot_ / "model.safetensors"));
}

}  // namespace
}  // namespace octavo
