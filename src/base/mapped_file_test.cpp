#include "base/mapped_file.h"

#include <gtest/gtest.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

constexpr size_t kFileBytes = 1 << 20;

class MappedFileTest : public ::testing::Test {
 protected:
  MappedFileTest() {
    std::string name = (fs::temp_directory_path() / "octavo-mapped-XXXXXX").string();
    ::close(::mkstemp(name.data()));
    path_ = name;
    std::ofstream(path_, std::ios::binary) << std::string(kFileBytes, '\1');
  }
  ~MappedFileTest() override { fs::remove(path_); }

  static size_t sum(const MappedFile& file) {
    size_t total = 0;
    for (const std::byte each : file.bytes()) total += static_cast<size_t>(each);
    return total;
  }

  fs::path path_;
};

TEST_F(MappedFileTest, AFileThatBecomesShorterReadsAsZerosAndIsReported) {
  const MappedFile file(path_);
  file.check();
  fs::resize_file(path_, kFileBytes / 2);
  EXPECT_EQ(sum(file), kFileBytes / 2);
  EXPECT_THROW(file.check(), SetupError);
}

TEST_F(MappedFileTest, ManyThreadsMayFindTheEndAtOnce) {
  MappedFile opened(path_);
  const MappedFile file = std::move(opened);
  fs::resize_file(path_, 0);
  std::vector<size_t> sums(8, 1);
  std::vector<std::thread> threads;
  for (size_t& each : sums) threads.emplace_back([&] { each = sum(file); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), size_t{0}), 0u);
  EXPECT_THROW(file.check(), SetupError);
}

TEST_F(MappedFileTest, AnotherFileInTheSamePlaceIsNotReported) {
  {
    const MappedFile shorter(path_);
    fs::resize_file(path_, 1);
    sum(shorter);
  }
  fs::resize_file(path_, kFileBytes);
  const MappedFile whole(path_);
  EXPECT_EQ(sum(whole), 1u);
  whole.check();
}

TEST_F(MappedFileTest, AnUnwatchedMappingStillEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto read_past_the_end = [&] {
    const MappedFile watched(path_);
    std::FILE* file = std::fopen(path_.c_str(), "r");
    auto* bytes = static_cast<volatile char*>(
        ::mmap(nullptr, kFileBytes, PROT_READ, MAP_PRIVATE, ::fileno(file), 0));
    fs::resize_file(path_, 0);
    std::exit(bytes[0]);
  };
  EXPECT_DEATH(read_past_the_end(), "");
}

}  // namespace
}  // namespace octavo
