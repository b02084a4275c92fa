#include "models/find_pooling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kLastModules = R"([
  {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
  {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
  {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}
])";
constexpr const char* kLastToken =
    R"({"word_embedding_dimension": 64, "pooling_mode_cls_token": false,
        "pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true, "include_prompt": true})";

// A folder with a checkpoint of one tensor.
class PoolingPlanTest : public testing::Test {
 protected:
  PoolingPlanTest() {
    const char* name = testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = fs::path(testing::TempDir()) / name;
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    put("config.json", R"({"model_type": "qwen3"})");
    put("model.safetensors",
        test_files::safetensors_file(
            R"({"x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})", 4));
  }
  void put(const std::string& name, const std::string& text) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  std::optional<PoolingPlan> plan(const PoolingOptions& options = {.runner = RunnerKind::kAuto}) {
    return plan_pooling(Checkpoint::open(folder_), options);
  }
  std::string error(const PoolingOptions& options = {.runner = RunnerKind::kAuto}) {
    try {
      plan(options);
    } catch (const SetupError& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

TEST_F(PoolingPlanTest, ByDefaultACheckpointGeneratesTokens) {
  EXPECT_FALSE(plan().has_value());
  EXPECT_FALSE(plan({.runner = RunnerKind::kGenerate}).has_value());
}

TEST_F(PoolingPlanTest, PoolingDefaultsToTheLastTokenNormalised) {
  const auto made = plan({.runner = RunnerKind::kPooling});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->kind, Pooling::kLast);
  EXPECT_TRUE(made->normalize);
  EXPECT_FALSE(made->matryoshka);
}

TEST_F(PoolingPlanTest, TheFilesOfSentenceTransformersAreFound) {
  put("modules.json", kLastModules);
  put("1_Pooling/config.json", kLastToken);
  put("sentence_bert_config.json", R"({"max_seq_length": 512, "do_lower_case": false})");
  const auto last = plan();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->kind, Pooling::kLast);
  EXPECT_TRUE(last->normalize);
  EXPECT_EQ(last->max_tokens, 512);
  EXPECT_FALSE(plan({.runner = RunnerKind::kGenerate}).has_value());

  put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  EXPECT_EQ(plan()->kind, Pooling::kMean);
  put("1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  EXPECT_EQ(plan()->kind, Pooling::kMean);
  put("modules.json", R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
      {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  EXPECT_FALSE(plan()->normalize);
}

TEST_F(PoolingPlanTest, UnsupportedSettingsThatChangeTheVectorAreRejected) {
  put("modules.json", kLastModules);
  put("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  EXPECT_THAT(error(), HasSubstr("pooling_mode_cls_token"));
  EXPECT_THAT(error(), HasSubstr("--pooler-config"));
  put("1_Pooling/config.json",
      R"({"pooling_mode_mean_tokens": true, "pooling_mode_max_tokens": true})");
  EXPECT_THAT(error(), HasSubstr("pooling_mode_max_tokens and pooling_mode_mean_tokens"));
  put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  EXPECT_THAT(error(), HasSubstr("include_prompt"));
  put("1_Pooling/config.json", kLastToken);
  put("sentence_bert_config.json", R"({"do_lower_case": true})");
  EXPECT_THAT(error(), HasSubstr("do_lower_case"));
  fs::remove(folder_ / "sentence_bert_config.json");
  put("config.json", R"({"model_type": "qwen2", "is_causal": false})");
  EXPECT_THAT(error(), HasSubstr("is_causal"));
  put("config.json", R"({"model_type": "qwen3"})");
  put("modules.json", R"([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
      {"path": "2_Dense", "type": "sentence_transformers.models.Dense"}])");
  EXPECT_THAT(error(), HasSubstr("Dense"));
  put("modules.json", R"({"no": "list"})");
  EXPECT_THAT(error(), HasSubstr("not a list"));
  put("modules.json", R"([{"type": 3}])");
  EXPECT_THAT(error(), HasSubstr("type"));
}

TEST_F(PoolingPlanTest, FlagsComeFirst) {
  put("modules.json", kLastModules);
  put("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  const auto made =
      plan({.runner = RunnerKind::kAuto,
            .pooler_config = R"({"pooling_type": "MEAN", "use_activation": false,
                                 "dimensions": 32})",
            .hf_overrides = R"({"is_matryoshka": true, "matryoshka_dimensions": [32, 64]})"});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->kind, Pooling::kMean);
  EXPECT_FALSE(made->normalize);
  EXPECT_EQ(made->dimensions, 32);
  EXPECT_TRUE(made->matryoshka);
  EXPECT_THAT(made->matryoshka_dimensions, ElementsAre(32, 64));
}

TEST_F(PoolingPlanTest, UnknownKeysAreRejected) {
  const auto pooler = [&](const char* json) {
    return error({.runner = RunnerKind::kPooling, .pooler_config = json});
  };
  EXPECT_THAT(pooler("{"), HasSubstr("--pooler-config: must be a JSON object"));
  EXPECT_THAT(pooler(R"({"pooling_type": "CLS"})"), HasSubstr("only LAST and MEAN are supported"));
  EXPECT_THAT(pooler(R"({"enable_chunked_processing": true})"), HasSubstr("not a supported key"));
  EXPECT_THAT(error({.runner = RunnerKind::kPooling, .hf_overrides = R"({"rope_theta": 1})"}),
              HasSubstr("supported keys: is_matryoshka"));
}

TEST_F(PoolingPlanTest, MatryoshkaIsReadFromTheConfig) {
  put("config.json", R"({"model_type": "qwen3", "matryoshka_dimensions": [16, 32]})");
  const auto made = plan({.runner = RunnerKind::kPooling});
  EXPECT_TRUE(made->matryoshka);
  EXPECT_THAT(made->matryoshka_dimensions, ElementsAre(16, 32));
}

}  // namespace
}  // namespace octavo
