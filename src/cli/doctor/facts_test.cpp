#include "cli/doctor/facts.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace octavo {
namespace {

namespace fs = std::filesystem;

class DoctorFolders : public testing::Test {
 protected:
  DoctorFolders() { fs::create_directories(root_); }
  ~DoctorFolders() override { fs::remove_all(root_); }

  const fs::path root_ =
      fs::temp_directory_path() / ("octavo_doctor_" + std::to_string(::getpid()));
};

TEST_F(DoctorFolders, AnExistingFolder) {
  const FolderFacts facts = read_folder("models", root_.string(), true);
  EXPECT_TRUE(facts.exists && facts.readable && facts.writable);
  EXPECT_GT(facts.free_bytes, 0u);
}

TEST_F(DoctorFolders, AMissingFolderIsJudgedByItsParent) {
  const FolderFacts facts = read_folder("models", (root_ / "not/yet").string(), true);
  EXPECT_FALSE(facts.exists || facts.readable);
  EXPECT_TRUE(facts.writable);
  EXPECT_GT(facts.free_bytes, 0u);
}

TEST_F(DoctorFolders, AFileIsNotAFolder) {
  std::ofstream(root_ / "file") << "x";
  EXPECT_FALSE(read_folder("models", (root_ / "file").string(), true).exists);
}

TEST_F(DoctorFolders, ContainersAreDetectedByTheirMarkerFiles) {
  if (std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) GTEST_SKIP() << "runs in Kubernetes";
  EXPECT_EQ(find_container(root_.string()), "");
  fs::create_directories(root_ / "run/systemd");
  std::ofstream(root_ / "run/systemd/container") << "lxc\n";
  EXPECT_EQ(find_container(root_.string()), "lxc");
  std::ofstream(root_ / ".dockerenv") << "";
  EXPECT_EQ(find_container(root_.string()), "docker");
}

}  // namespace
}  // namespace octavo
