#include "models/load_score_head.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::FloatEq;
namespace fs = std::filesystem;

constexpr int kWidth = 8;

// A folder with tensors whose element i is `first` + i.
class ScoreHeadFile : public testing::Test {
 protected:
  ~ScoreHeadFile() override { fs::remove_all(folder_); }

  void put(const std::string& name, const std::string& shape, int count, float first) {
    const std::string begin = std::to_string(data_.size());
    for (int i = 0; i < count; ++i) data_ += test_files::le(first + static_cast<float>(i));
    header_ += (header_.empty() ? "\"" : ", \"") + name + R"(": {"dtype": "F32", "shape": )" +
               shape + R"(, "data_offsets": [)" + begin + ", " + std::to_string(data_.size()) +
               "]}";
  }

  std::shared_ptr<const ScoreHead> load(const ScoreHeadPlan& plan,
                                        WeightUse use = WeightUse::kLoad) {
    fs::create_directories(folder_);
    std::ofstream(folder_ / "config.json") << "{}";
    std::ofstream(folder_ / "model.safetensors", std::ios::binary)
        << test_files::safetensors_file("{" + header_ + "}", 0) << data_;
    const Checkpoint checkpoint = Checkpoint::open(folder_);
    WeightSource source(checkpoint, {}, use);
    auto head = load_score_head(plan, kWidth, source);
    problems_ = source.problems();
    return head;
  }

  std::vector<std::string> problems_;

 private:
  fs::path folder_ = fs::path(testing::TempDir()) / "octavo_score_head_test";
  std::string header_;
  std::string data_;
};

TEST_F(ScoreHeadFile, HasAnOutputWithABias) {
  put("classifier.weight", "[2, 8]", 16, 0);
  put("classifier.bias", "[2]", 2, 100);
  const auto head = load({.out = "classifier", .out_bias = true, .labels = 2});
  EXPECT_EQ(head->labels(), 2);
  EXPECT_THAT(head->logits(std::vector<float>(kWidth, 1)),
              ElementsAre(FloatEq(28 + 100), FloatEq(92 + 101)));
}

TEST_F(ScoreHeadFile, OfTwoTokensIsTheDifferenceOfTheirRows) {
  put("lm_head.weight", "[20, 8]", 160, 0);
  const auto head = load({.out = "lm_head", .rows = {17, 3}, .out_rows = 20});
  EXPECT_EQ(head->labels(), 1);
  EXPECT_THAT(head->logits(std::vector<float>(kWidth, 1)), ElementsAre(FloatEq(14 * 8 * 8)));
}

TEST_F(ScoreHeadFile, HasTheLayersOfTheirPlan) {
  put("head.dense.weight", "[8, 8]", 64, 0);
  put("head.norm.weight", "[8]", 8, 1);
  put("classifier.weight", "[1, 8]", 8, 0);
  put("classifier.bias", "[1]", 1, 3);
  const auto head = load({.dense = "head.dense",
                          .activation = ScoreActivation::kRelu,
                          .norm = "head.norm",
                          .norm_eps = 1e-5f,
                          .out = "classifier",
                          .out_bias = true});
  // The norm of numbers at equal distances from each other.
  const float got = head->logits(std::vector<float>(kWidth, 1))[0];
  double wanted = 3;
  for (int i = 0; i < kWidth; ++i)
    wanted += i * (1 + i) * (i - 3.5) / std::sqrt(5.25);  // of 0 to 7, the variance is 5.25
  EXPECT_NEAR(got, wanted, 1e-3);
}

TEST_F(ScoreHeadFile, ATensorThatIsMissingIsNamed) {
  put("classifier.weight", "[1, 8]", 8, 0);
  const ScoreHeadPlan plan{.out = "classifier", .out_bias = true};
  test_files::expect_setup_error([&] { load(plan); }, "classifier.bias");
  EXPECT_EQ(load(plan, WeightUse::kCheck), nullptr);
  ASSERT_EQ(problems_.size(), 1u);
  EXPECT_THAT(problems_[0], testing::HasSubstr("classifier.bias"));
}

}  // namespace
}  // namespace octavo
