#include "models/find_pooling.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using testing::AllOf;
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
  EXPECT_THAT(pooler(R"({"pooling_type": "CLS"})"), HasSubstr("sees no other token"));
  EXPECT_THAT(pooler(R"({"pooling_type": "ALL"})"),
              HasSubstr("only LAST, MEAN and CLS are supported"));
  EXPECT_THAT(pooler(R"({"enable_chunked_processing": true})"), HasSubstr("not a supported key"));
  EXPECT_THAT(error({.runner = RunnerKind::kPooling, .hf_overrides = R"({"rope_theta": 1})"}),
              HasSubstr("supported keys: is_matryoshka"));
}

TEST_F(PoolingPlanTest, EncodersPoolTheFirstTokenByDefault) {
  put("config.json", R"({"model_type": "bert", "architectures": ["BertModel"]})");
  const auto usual = plan();
  ASSERT_TRUE(usual.has_value());
  EXPECT_EQ(usual->kind, Pooling::kFirst);
  EXPECT_TRUE(usual->normalize);
  EXPECT_EQ(usual->labels, 0);
  EXPECT_EQ(usual->describe(), "the first token, normalised");
  put("modules.json", kLastModules);
  put("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  EXPECT_EQ(plan()->kind, Pooling::kMean);
  put("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  EXPECT_EQ(plan()->kind, Pooling::kFirst);
}

TEST_F(PoolingPlanTest, LowerCasingIsAcceptedIfTheTokenizerDoesIt) {
  put("config.json", R"({"model_type": "bert"})");
  put("modules.json", kLastModules);
  put("1_Pooling/config.json", R"({"pooling_mode_cls_token": true})");
  put("sentence_bert_config.json", R"({"max_seq_length": 256, "do_lower_case": true})");
  EXPECT_THAT(error(), HasSubstr("do_lower_case"));
  put("tokenizer.json", R"({"normalizer": {"type": "BertNormalizer", "lowercase": false}})");
  EXPECT_THAT(error(), HasSubstr("do_lower_case"));
  for (const char* normalizer :
       {R"({"type": "BertNormalizer", "lowercase": true})",
        R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]})"}) {
    put("tokenizer.json", std::string(R"({"normalizer": )") + normalizer + "}");
    EXPECT_EQ(error(), "no error") << normalizer;
    EXPECT_EQ(plan()->max_tokens, 256);
  }
}

TEST_F(PoolingPlanTest, ClassifiersScore) {
  put("config.json", R"({"model_type": "xlm-roberta", "id2label": {"0": "LABEL_0"},
      "architectures": ["XLMRobertaForSequenceClassification"]})");
  put("modules.json", "not read");
  const auto one = plan();
  ASSERT_TRUE(one.has_value());
  EXPECT_EQ(one->labels, 1);
  EXPECT_EQ(one->kind, Pooling::kFirst);
  EXPECT_EQ(one->pair_prompt, PairPrompt::kSpecialTokens);
  EXPECT_TRUE(one->normalize);
  EXPECT_EQ(one->describe(), "1 label, from the first token");

  put("config.json", R"({"model_type": "modernbert", "num_labels": 3, "classifier_pooling": "mean",
      "architectures": ["ModernBertForSequenceClassification"]})");
  EXPECT_EQ(plan()->labels, 3);
  EXPECT_EQ(plan()->kind, Pooling::kMean);
  put("config.json", R"({"model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"],
      "id2label": {"0": "a"}})");
  EXPECT_EQ(plan()->labels, 1);
  EXPECT_EQ(plan()->kind, Pooling::kLast);
  for (const char* activation :
       {R"("sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity")",
        R"("sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"})"}) {
    put("config.json", std::string(R"({"model_type": "bert", "id2label": {"0": "a"},
        "architectures": ["BertForSequenceClassification"], )") +
                           activation + "}");
    EXPECT_FALSE(plan()->normalize) << activation;
  }
  const auto activated = [&](const char* key) {
    put("config.json", fmt::format(R"({{"model_type": "bert", "id2label": {{"0": "a"}}, {},
        "architectures": ["BertForSequenceClassification"]}})",
                                   key));
  };
  activated(R"("sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"})");
  EXPECT_TRUE(plan()->normalize);
  activated(R"("sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"})");
  EXPECT_THAT(error(), AllOf(HasSubstr("activation_fn"), HasSubstr("Tanh")));
  activated(R"("sbert_ce_default_activation_function": "torch.nn.modules.activation.Tanh")");
  EXPECT_THAT(error(), HasSubstr("sbert_ce_default_activation_function"));
  activated(R"("sentence_transformers": {})");
  EXPECT_THAT(error({.runner = RunnerKind::kAuto, .pooler_config = R"({"dimensions": 8})"}),
              HasSubstr("dimensions"));
}

TEST_F(PoolingPlanTest, Qwen3RerankerIsAskedForAsInVllm) {
  const auto asked = [](const char* overrides) {
    return PoolingOptions{.runner = RunnerKind::kAuto, .hf_overrides = overrides};
  };
  const auto made = plan(asked(R"({"architectures": ["Qwen3ForSequenceClassification"],
      "classifier_from_token": ["no", "yes"], "is_original_qwen3_reranker": true})"));
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->labels, 1);
  EXPECT_EQ(made->kind, Pooling::kLast);
  EXPECT_EQ(made->pair_prompt, PairPrompt::kQwen3Reranker);
  EXPECT_THAT(error(asked(R"({"classifier_from_token": ["No", "Yes"]})")),
              HasSubstr("classifier_from_token"));
  EXPECT_THAT(error(asked(R"({"classifier_from_token": ["no", "yes"]})")),
              HasSubstr("is_original_qwen3_reranker"));
  EXPECT_THAT(error(asked(R"({"is_original_qwen3_reranker": true})")),
              HasSubstr("classifier_from_token"));
  EXPECT_FALSE(plan(asked(R"({"is_original_qwen3_reranker": false})")).has_value());
  put("config.json", R"({"model_type": "gemma2"})");
  EXPECT_THAT(error(asked(R"({"classifier_from_token": ["no", "yes"],
                              "is_original_qwen3_reranker": true})")),
              HasSubstr("gemma2"));
}

TEST_F(PoolingPlanTest, MatryoshkaIsReadFromTheConfig) {
  put("config.json", R"({"model_type": "qwen3", "matryoshka_dimensions": [16, 32]})");
  const auto made = plan({.runner = RunnerKind::kPooling});
  EXPECT_TRUE(made->matryoshka);
  EXPECT_THAT(made->matryoshka_dimensions, ElementsAre(16, 32));
}

}  // namespace
}  // namespace octavo
