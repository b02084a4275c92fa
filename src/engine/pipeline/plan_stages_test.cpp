#include "engine/pipeline/plan_stages.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "engine/cluster/cluster_setup.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

// Layers of 1 GiB each; embeddings and output matrix are small.
ModelDescription model_of(int layers) {
  ModelDescription model;
  model.plan.vocab = 1000;
  model.plan.hidden = 512;
  model.plan.max_context = 4096;
  LayerPlan layer;
  layer.attention().heads = 8;
  layer.attention().kv_heads = 2;
  layer.attention().head_dim = 64;
  layer.mlp().intermediate = 1024;
  model.plan.layers.assign(static_cast<size_t>(layers), layer);
  model.weights = {.embeddings = kMiB, .layers = {}, .output = kMiB};
  model.weights.layers.assign(static_cast<size_t>(layers), kGiB);
  model.weights_bytes = static_cast<uint64_t>(layers) * kGiB + 2 * kMiB;
  return model;
}

EngineOptions options_of(uint64_t limit) {
  return {.memory_fraction = 1, .memory_limit = limit, .max_num_seqs = 4};
}

std::vector<int> layers_of(const PipelinePlan& plan) {
  std::vector<int> layers;
  for (const StagePlan& stage : plan.stages) layers.push_back(stage.layers.layers());
  return layers;
}

std::string error_of(const ModelDescription& model, const EngineOptions& options,
                     const std::vector<uint64_t>& budgets) {
  try {
    plan_stages(model, options, budgets);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

// The machine running the tests limits rank 0, so it has the smallest part.
class PlanStages : public testing::Test {
 protected:
  ModelDescription model_ = [] {
    ModelDescription model = model_of(12);
    for (uint64_t& layer : model.weights.layers) layer /= 16;
    model.weights_bytes = 12 * kGiB / 16 + 2 * kMiB;
    return model;
  }();
};

TEST_F(PlanStages, DividesInProportionToMemory) {
  const EngineOptions options = options_of(kGiB);
  EXPECT_THAT(layers_of(plan_stages(model_, options, std::vector<uint64_t>{0, kGiB})),
              ElementsAre(6, 6));
  const PipelinePlan uneven =
      plan_stages(model_, options, std::vector<uint64_t>{0, 2 * kGiB, 2 * kGiB});
  EXPECT_EQ(uneven.stages[1].layers.layers(), uneven.stages[2].layers.layers());
  EXPECT_LT(uneven.stages[0].layers.layers(), uneven.stages[1].layers.layers());
}

TEST_F(PlanStages, AllRanksHaveAsManyPages) {
  const PipelinePlan plan =
      plan_stages(model_, options_of(kGiB), std::vector<uint64_t>{0, kGiB, 3 * kGiB});
  uint64_t weights = 0;
  int next = 0;
  for (size_t rank = 0; rank < 3; ++rank) {
    const StagePlan& stage = plan.stages[rank];
    EXPECT_EQ(stage.memory.page_count, plan.page_count());
    EXPECT_EQ(stage.memory.max_model_len, plan.max_model_len());
    EXPECT_LE(stage.memory.total_bytes(), stage.memory.budget_bytes);
    EXPECT_EQ(stage.layers.first, next);
    next = stage.layers.last;
    weights += stage.memory.weights_bytes;
  }
  EXPECT_EQ(next, 12);
  EXPECT_EQ(weights, model_.weights_bytes);
  EXPECT_EQ(plan.cuts().size(), 2u);
  EXPECT_THAT(plan.table(), HasSubstr("0-"));
}

TEST_F(PlanStages, KvMemoryIsThatOfAllRanks) {
  EngineOptions options = options_of(kGiB);
  options.kv_bytes = 64 * kMiB;
  const PipelinePlan plan = plan_stages(model_, options, std::vector<uint64_t>{0, kGiB});
  EXPECT_LE(plan.stages[0].memory.kv_bytes + plan.stages[1].memory.kv_bytes, 64 * kMiB);
  EXPECT_GT(plan.stages[0].memory.kv_bytes + plan.stages[1].memory.kv_bytes, 60 * kMiB);
}

TEST_F(PlanStages, SaysWhatToChange) {
  EXPECT_THAT(error_of(model_of(2), options_of(kGiB), {0, kGiB, kGiB}),
              HasSubstr("--pipeline-parallel-size 3: this model can be divided into at most 2"));
  EXPECT_THAT(error_of(model_of(12), options_of(kGiB), {0, kGiB}),
              HasSubstr("use --pipeline-parallel-size"));
}

TEST_F(PlanStages, ASetupIsReadAsWritten) {
  const ClusterSetup setup{.cuts = {4, 8},
                           .page_count = 77,
                           .max_model_len = 4096,
                           .dtype = DType::kFloat16,
                           .predicts = true,
                           .most_drafts = 1,
                           .pooling = {.runner = RunnerKind::kPooling, .pooler_config = "{}"},
                           .model_digest = "ab",
                           .arithmetic = "v1"};
  const ClusterSetup read = ClusterSetup::from_json(setup.to_json());
  EXPECT_EQ(read.to_json(), setup.to_json());
  EXPECT_EQ(read.stage(1, model_.plan), (StageRange{4, 8}));
  EXPECT_EQ(read.stage(2, model_.plan), (StageRange{8, 12}));
  EXPECT_THROW(read.stage(3, model_.plan), SetupError);
  EXPECT_EQ(read.options({}).speculation.method, SpeculativeMethod::kMtp);
  EXPECT_THROW(ClusterSetup::from_json("{}"), SetupError);
  EXPECT_THROW(ClusterSetup::from_json("["), SetupError);
}

}  // namespace
}  // namespace octavo
