#include "cli/image_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace octavo {
namespace {

// 3 x 2 pixels.
constexpr unsigned char kGif[] = {0x47, 0x49, 0x46, 0x38, 0x37, 0x61, 0x03, 0x00, 0x02,
                                  0x00, 0x80, 0x00, 0x00, 0x00, 0x00, 0x00, 0xff, 0xff,
                                  0xff, 0x2c, 0x00, 0x00, 0x00, 0x00, 0x03, 0x00, 0x02,
                                  0x00, 0x00, 0x02, 0x02, 0x84, 0x5f, 0x00, 0x3b};

class ImageFileTest : public testing::Test {
 protected:
  ~ImageFileTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, std::string_view bytes) {
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return (folder_ / name).string();
  }
  std::string refusal_of(const std::string& path) {
    try {
      read_image_file(path);
    } catch (const RequestError& error) {
      EXPECT_EQ(error.param(), path);
      return error.what();
    }
    return "was read";
  }

 private:
  const std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() /
      testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ImageFileTest, AnImageIsReadWithItsNameAsTheField) {
  const std::string path = write("a.gif", {reinterpret_cast<const char*>(kGif), std::size(kGif)});
  const api::ImageSource image = read_image_file(path);
  EXPECT_EQ(image.field, path);
  EXPECT_EQ(image.file->size(), std::size(kGif));
  EXPECT_FALSE(image.low_detail);
}

TEST_F(ImageFileTest, OtherFilesAreRefusedByName) {
  EXPECT_THAT(refusal_of(write("a.txt", "hello")), testing::Not(testing::HasSubstr("was read")));
  EXPECT_THAT(refusal_of("/nowhere/a.png"), testing::HasSubstr("is not a file"));
  EXPECT_THAT(refusal_of("/"), testing::HasSubstr("is not a file"));
  EXPECT_THAT(refusal_of("https://images.example/a.png"), testing::HasSubstr("is a URL"));
}

}  // namespace
}  // namespace octavo
