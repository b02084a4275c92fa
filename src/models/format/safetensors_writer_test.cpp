#include "models/format/safetensors_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/mapped_file.h"
#include "models/format/safetensors.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

TEST(SafetensorsWriter, PartsInAnyOrderReadBack) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("octavo_writer_" + std::to_string(::getpid()) + ".safetensors");
  const std::vector<SafetensorsTensor> tensors = {{"a", TensorType::U32, {2, 3}},
                                                  {"b", TensorType::BF16, {5}}};
  SafetensorsWriter writer(path, tensors);
  writer.write(1, 4, test_files::exact("456789"));
  writer.write(0, 0, test_files::exact("abcdefghijkl"));
  writer.write(1, 0, test_files::exact("0123"));
  writer.write(0, 12, test_files::exact("mnopqrstuvwx"));
  writer.finish();
  const MappedFile file(path);
  const Safetensors read = parse_safetensors(file.bytes(), "file");
  ASSERT_EQ(read.tensors.size(), 2u);
  EXPECT_EQ(read.metadata.at("format"), "mlx");
  EXPECT_EQ(read.tensors[0].shape, (std::vector<int64_t>{2, 3}));
  const auto text = [&](size_t i) {
    const auto bytes = read.tensors[i].bytes;
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(0), "abcdefghijklmnopqrstuvwx");
  EXPECT_EQ(text(1), "0123456789");
  std::filesystem::remove(path);
}

TEST(SafetensorsWriter, AFolderThatDoesNotExistIsNamed) {
  test_files::expect_setup_error([] { SafetensorsWriter("/no/such/folder/file", {}); },
                                 "/no/such/folder/file: cannot be written");
}

}  // namespace
}  // namespace octavo
