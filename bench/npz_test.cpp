#include "bench/npz.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace octavo::bench {
namespace {

template <typename T>
T read_at(const std::string& bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

// tests/e2e/test_bench.py reads a file with NumPy.
TEST(Npz, HasOneStoredNpyFilePerArray) {
  const std::vector<NpzArray> arrays = {{.name = "a", .shape = {3}, .values = {1, 2, 3.5}},
                                        {.name = "bc", .shape = {1, 2}, .values = {-4, 5}}};
  const std::string zip = npz_bytes(arrays);
  constexpr size_t kFirstContent = 30 + 5;  // header and "a.npy"
  constexpr size_t kFirstSize = 128 + 3 * sizeof(double);
  EXPECT_EQ(zip.substr(0, 4), "PK\x03\x04");
  EXPECT_EQ(read_at<uint32_t>(zip, 18), kFirstSize);
  EXPECT_EQ(read_at<uint32_t>(zip, 22), kFirstSize);
  EXPECT_EQ(zip.substr(30, 5), "a.npy");
  EXPECT_EQ(zip.substr(kFirstContent, 6), "\x93NUMPY");
  EXPECT_NE(zip.find("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }"),
            std::string::npos);
  EXPECT_NE(zip.find("'shape': (1, 2), }"), std::string::npos);
  EXPECT_EQ(zip[kFirstContent + 127], '\n');
  EXPECT_EQ(read_at<double>(zip, kFirstContent + 128 + 2 * sizeof(double)), 3.5);

  const size_t end = zip.size() - 22;
  EXPECT_EQ(zip.substr(end, 4), "PK\x05\x06");
  EXPECT_EQ(read_at<uint16_t>(zip, end + 10), 2);
  const auto directory = read_at<uint32_t>(zip, end + 16);
  EXPECT_EQ(directory + read_at<uint32_t>(zip, end + 12), end);
  EXPECT_EQ(zip.substr(directory, 4), "PK\x01\x02");
  EXPECT_EQ(read_at<uint32_t>(zip, directory + 42), 0u);
  const size_t second = directory + 46 + 5;
  EXPECT_EQ(zip.substr(read_at<uint32_t>(zip, second + 42), 4), "PK\x03\x04");
  EXPECT_EQ(zip.substr(second + 46, 6), "bc.npy");
}

TEST(Npz, AFileThatCannotBeWrittenIsASetupError) {
  EXPECT_THROW(write_npz("/dev/null/costs.npz", {}), SetupError);
}

}  // namespace
}  // namespace octavo::bench
