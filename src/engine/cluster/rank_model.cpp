#include "engine/cluster/rank_model.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "engine/plan_engine.h"
#include "kernels/arithmetic.h"
#include "models/model_digest.h"
#include "models/tensor_check.h"

namespace octavo {
namespace {

void check_same_model(const Checkpoint& checkpoint, const ClusterSetup& setup) {
  if (setup.arithmetic != arithmetic_name())
    throw SetupError(fmt::format(
        "rank 0 computes with arithmetic {}, this rank with {}; use the same version and device",
        setup.arithmetic, arithmetic_name()));
  if (setup.model_digest != hex_of(model_digest(checkpoint)))
    throw SetupError(fmt::format("{}: rank 0 has other files of this model; copy its files",
                                 checkpoint.path().string()));
}

}  // namespace

RankModel wait_for_setup(const Checkpoint& checkpoint, const EngineOptions& own,
                         WorkerChannel& channel) {
  ClusterSetup setup = ClusterSetup::from_json(channel.wait_setup());
  check_same_model(checkpoint, setup);
  EngineOptions options = setup.options(own);
  ModelDescription description = describe_model(checkpoint, options);
  if (checkpoint.gguf() != nullptr) check_tensors(checkpoint, description);
  return {checkpoint, std::move(setup), std::move(options), std::move(description)};
}

}  // namespace octavo
