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
    for (const std::string& name : names) {
      header += (header.size() > 1 ? ", \"" : "\"") + name +
                R"(": {"dtype": "F32", "shape": [1], "data_offsets": [)" +
                std::to_string(4 * count_) + ", " + std::to_string(4 * count_ + 4) + "]}";
      ++count_;
    }
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "config.json") << "{}";
    std::ofstream(folder_ / "model.safetensors", std::ios::binary)
        << test_files::safetensors_file(header + "}", 4 * count_);
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
  size_t count_ = 0;
};

TEST_F(CheckpointFit, LayersAfterTheModelsAreNotRead) {
  const Checkpoint checkpoint = checkpoint_with({"model.embed_tokens.weight"});
  const DecoderPlan plan = plan_of_two_layers();
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "model.layers.1.mlp.gate.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.2.eh_proj.weight"));
  EXPECT_FALSE(reads_tensor(plan, checkpoint, "model.layers.10.eh_proj.weight"));
  EXPECT_TRUE(reads_tensor(plan, checkpoint, "lm_head.weight"));
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

}  // namespace
}  // namespace octavo
