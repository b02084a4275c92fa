#include "models/checkpoint_fit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "models/format/test_files.h"

namespace octavo {
namespace {

class CheckpointFit : public testing::Test {
 protected:
  ~CheckpointFit() override { std::filesystem::remove_all(folder_); }

  Checkpoint checkpoint_with(const std::vector<std::string>& names) {
    std::string header = "{";
    size_t count = 0;
    for (const std::string& name : names) {
      header += (header.size() > 1 ? ", \"" : "\"") + name +
                R"(": {"dtype": "F32", "shape": [1], "data_offsets": [)" +
                std::to_string(4 * count) + ", " + std::to_string(4 * count + 4) + "]}";
      ++count;
    }
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "config.json") << "{}";
    std::ofstream(folder_ / "model.safetensors", std::ios::binary)
        << test_files::safetensors_file(header + "}", 4 * count);
    return Checkpoint::open(folder_);
  }

  DecoderPlan plan_of_two_layers() const {
    DecoderPlan plan;
    plan.layers.resize(2);
    return plan;
  }

 private:
  std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / "octavo_checkpoint_fit_test";
};

TEST_F(CheckpointFit, LayersAfterTheModelsAreNotRead) {
  const Checkpoint checkpoint = checkpoint_with({"model.embed_tokens.weight"});
  const DecoderPlan plan = plan_of_two_layers();
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "model.layers.1.mlp.gate.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.2.eh_proj.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.10.eh_proj.weight"));
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "lm_head.weight"));
}

TEST_F(CheckpointFit, APredictionLayerInUseIsReadWithoutItsCopies) {
  const Checkpoint checkpoint = checkpoint_with({"model.embed_tokens.weight"});
  DecoderPlan plan = plan_of_two_layers();
  plan.mtp.emplace().at = "model.layers.2.";
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "model.layers.2.eh_proj.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.2.embed_tokens.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.2.shared_head.head.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.3.eh_proj.weight"));
}

TEST_F(CheckpointFit, NamesThatTheFileHasAreNotRenamed) {
  const Checkpoint checkpoint = checkpoint_with(
      {"model.embed_tokens.weight", "model.layers.0.feed_forward.gate_proj.weight"});
  DecoderPlan plan = plan_of_two_layers();
  plan.renames = {{".feed_forward.gate_proj", ".feed_forward.w1"}, {".q_norm", ".q_layernorm"}};
  fit_to_checkpoint(plan, checkpoint);
  ASSERT_EQ(plan.renames.size(), 1);
  EXPECT_EQ(plan.renames[0].ours, ".q_norm");
}

// The part of a BERT plan that names tensors.
DecoderPlan encoder_of_two_layers() {
  DecoderPlan plan;
  plan.layers.resize(2);
  plan.prefix = "bert";
  plan.head_name.clear();
  plan.renames = {{"embed_tokens", "embeddings.word_embeddings"},
                  {"layers.", "encoder.layer."},
                  {"LayerNorm.weight", "LayerNorm.gamma"}};
  plan.encoder.emplace().positions = "embeddings.position_embeddings";
  plan.encoder->norm = "embeddings.LayerNorm";
  return plan;
}

TEST_F(CheckpointFit, EncodersMayHaveAPrefixOrNone) {
  for (const std::string prefix : {"bert.", ""}) {
    const Checkpoint checkpoint = checkpoint_with({prefix + "embeddings.word_embeddings.weight"});
    DecoderPlan plan = encoder_of_two_layers();
    fit_to_checkpoint(plan, checkpoint);
    EXPECT_EQ(plan.prefix, prefix.empty() ? "" : "bert");
    const auto role = [&](const std::string& name) {
      return place_of_tensor(plan, checkpoint, prefix + name).role;
    };
    EXPECT_EQ(role("embeddings.word_embeddings.weight"), TensorRole::kEmbeddings);
    EXPECT_EQ(role("embeddings.position_embeddings.weight"), TensorRole::kLayerInput);
    EXPECT_EQ(role("embeddings.LayerNorm.gamma"), TensorRole::kLayerInput);
    EXPECT_EQ(role("encoder.layer.1.output.dense.weight"), TensorRole::kLayer);
    EXPECT_TRUE(reads_tensor(plan, checkpoint, prefix + "encoder.layer.1.output.dense.weight"));
    for (const char* unread :
         {"pooler.dense.weight", "embeddings.position_ids", "encoder.layer.2.output.dense.weight"})
      EXPECT_FALSE(reads_tensor(plan, checkpoint, prefix + unread)) << unread;
    EXPECT_FALSE(reads_tensor(plan, checkpoint, "cls.predictions.bias"));
  }
}

TEST_F(CheckpointFit, AHeadThatScoresIsRead) {
  const Checkpoint checkpoint = checkpoint_with({"bert.embeddings.word_embeddings.weight"});
  DecoderPlan plan = encoder_of_two_layers();
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "classifier.weight"));
  plan.score = {.dense = "bert.pooler.dense", .out = "classifier"};
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "classifier.weight"));
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "bert.pooler.dense.bias"));
  EXPECT_EQ(place_of_tensor(plan, checkpoint, "classifier.weight").role, TensorRole::kOutput);
}

TEST_F(CheckpointFit, OldNamesOfNormsAreKeptOnlyIfTheFileHasThem) {
  const auto fitted = [&](const char* norm) {
    DecoderPlan plan = encoder_of_two_layers();
    fit_to_checkpoint(plan, checkpoint_with({"bert.embeddings.word_embeddings.weight", norm}));
    return renamed("bert.embeddings.LayerNorm.weight", plan.renames);
  };
  EXPECT_EQ(fitted("bert.embeddings.LayerNorm.weight"), "bert.embeddings.LayerNorm.weight");
  EXPECT_EQ(fitted("bert.embeddings.LayerNorm.gamma"), "bert.embeddings.LayerNorm.gamma");
}

}  // namespace
}  // namespace octavo
