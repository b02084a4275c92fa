#include "models/suppressed_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SuppressedTokensTest : public testing::Test {
 protected:
  SuppressedTokensTest() {
    const char* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::path(testing::TempDir()) / name;
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~SuppressedTokensTest() override { std::filesystem::remove_all(folder_); }

  void put(const char* name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  std::vector<int> of_generation_config(const std::string& json) {
    put("model.safetensors",
        test_files::safetensors_file(
            R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 4));
    put("generation_config.json", json);
    return suppressed_token_ids(Checkpoint::open(folder_), 10);
  }
  std::vector<int> of_gguf(const std::vector<int32_t>& ids, int vocab) {
    using test_files::le;
    std::string array = test_files::gguf_string("tokenizer.ggml.suppress_tokens") +
                        le(uint32_t{9}) + le(uint32_t{5}) + le(uint64_t{ids.size()});
    for (const int32_t id : ids) array += le(id);
    put("m.gguf",
        test_files::GgufParts{.values = {array},
                              .tensors = {test_files::gguf_tensor("x", {8}, test_files::kF32, 0)},
                              .data_bytes = 32}
            .file());
    return suppressed_token_ids(Checkpoint::open(folder_ / "m.gguf"), vocab);
  }

  std::filesystem::path folder_;
};

TEST_F(SuppressedTokensTest, AreSortedAndInTheVocabulary) {
  EXPECT_THAT(of_gguf({7, 3, -1, 3, 10, 1 << 30}, 10), ElementsAre(3, 7));
  EXPECT_THAT(of_gguf({}, 10), IsEmpty());
}

TEST_F(SuppressedTokensTest, ComeFromGenerationConfigToo) {
  EXPECT_THAT(of_generation_config(R"({"suppress_tokens": [5, 2, 99]})"), ElementsAre(2, 5));
  EXPECT_THAT(of_generation_config(R"({"suppress_tokens": null})"), IsEmpty());
  EXPECT_THAT(of_generation_config("{}"), IsEmpty());
  test_files::expect_setup_error([&] { of_generation_config(R"({"suppress_tokens": ["a"]})"); },
                                 "suppress_tokens");
}

TEST_F(SuppressedTokensTest, TooManyAreRefused) {
  test_files::expect_setup_error([&] { of_gguf({0, 1, 2}, 3); },
                                 "has 3 of 3 tokens; at most 2 of them are supported");
  std::vector<int32_t> many(20000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<int32_t>(i);
  test_files::expect_setup_error([&] { of_gguf(many, 100000); }, "at most 16384 of them");
}

}  // namespace
}  // namespace octavo
