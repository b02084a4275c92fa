#include "models/find_classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "models/format/test_files.h"

namespace octavo {
namespace {

using Strings = std::vector<std::string>;
using test_files::expect_setup_error;
using test_files::gguf_string;
using test_files::le;

constexpr uint32_t kNumberKey = 4, kStringKey = 8, kListKey = 9;

std::string string_list(std::string_view key, const Strings& values) {
  std::string bytes =
      gguf_string(key) + le(kListKey) + le(kStringKey) + le(uint64_t{values.size()});
  for (const std::string& value : values) bytes += gguf_string(value);
  return bytes;
}

// A GGUF file that ranks, with an output matrix of `shape`, columns first; none: without it.
std::string ranking_file(const std::string& architecture, const std::vector<uint64_t>& shape,
                         const Strings& labels = {}) {
  test_files::GgufParts parts{
      .values = {gguf_string("general.architecture") + le(kStringKey) + gguf_string(architecture),
                 test_files::gguf_value(architecture + ".pooling_type", kNumberKey, uint32_t{4})},
      .tensors = {test_files::gguf_tensor("token_embd.weight", {8, 4}, test_files::kF32, 0)},
      .data_bytes = 1024};
  if (!labels.empty())
    parts.values.push_back(string_list(architecture + ".classifier.output_labels", labels));
  if (!shape.empty()) {
    parts.tensors.push_back(
        test_files::gguf_tensor("cls.output.weight", shape, test_files::kF32, 128));
  }
  return parts.file();
}

std::optional<PoolingPlan> classifier_of(
    const std::string& file, const char* model_type,
    const nlohmann::json& overrides = nlohmann::json::object()) {
  const auto path = std::filesystem::path(testing::TempDir()) /
                    (std::string("find_classifier_") +
                     testing::UnitTest::GetInstance()->current_test_info()->name() + ".gguf");
  std::ofstream(path, std::ios::binary | std::ios::trunc) << file;
  return find_classifier(Checkpoint::open(path), Config({{"model_type", model_type}}, "m.gguf"),
                         Config(overrides, "--hf-overrides"));
}

TEST(FindClassifier, AGgufFileHasOneScorePerRow) {
  for (const auto& shape : {std::vector<uint64_t>{8}, {8, 1}}) {
    const auto plan = classifier_of(ranking_file("bert", shape), "bert");
    ASSERT_TRUE(plan.has_value());
    EXPECT_EQ(plan->labels, 1);
    EXPECT_EQ(plan->kind, Pooling::kFirst);
    EXPECT_EQ(plan->pair_prompt, PairPrompt::kSpecialTokens);
  }
  EXPECT_EQ(classifier_of(ranking_file("bert", {8, 3}), "bert")->labels, 3);
  expect_setup_error([] { classifier_of(ranking_file("bert", {}), "bert"); }, "cls.output.weight");
}

TEST(FindClassifier, AGgufFileOfQwen3RerankerAnswersYesOrNo) {
  const auto plan = classifier_of(ranking_file("qwen3", {8, 2}, {"yes", "no"}), "qwen3");
  ASSERT_TRUE(plan.has_value());
  EXPECT_EQ(plan->labels, 1);
  EXPECT_EQ(plan->kind, Pooling::kLast);
  EXPECT_EQ(plan->pair_prompt, PairPrompt::kQwen3Reranker);
  for (const Strings& labels : {Strings{}, Strings{"no", "yes"}, Strings{"yes"}}) {
    expect_setup_error([&] { classifier_of(ranking_file("qwen3", {8, 2}, labels), "qwen3"); },
                       "\"yes\" and \"no\"");
  }
}

TEST(FindClassifier, AGgufFileTakesNoOverrides) {
  for (const char* key : {"architectures", "classifier_from_token", "is_original_qwen3_reranker"}) {
    expect_setup_error([&] { classifier_of(ranking_file("bert", {8}), "bert", {{key, true}}); },
                       key);
  }
  EXPECT_TRUE(classifier_of(ranking_file("bert", {8}), "bert", {{"max_position_embeddings", 4}}));
}

}  // namespace
}  // namespace octavo
