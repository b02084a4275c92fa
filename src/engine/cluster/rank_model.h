// rank_model.h - what a rank other than 0 knows about its model before it loads it. No MLX.
#pragma once

#include "distributed/worker_channel.h"
#include "engine/cluster/cluster_setup.h"
#include "engine/engine_options.h"
#include "models/format/checkpoint.h"
#include "models/model_description.h"

namespace octavo {

struct RankModel {
  const Checkpoint& checkpoint;
  ClusterSetup setup;
  EngineOptions options;  // rank 0's, with what is about the machine from this rank's
  ModelDescription description;
};

// Waits for rank 0's plan and compares the model with it. Throws SetupError.
RankModel wait_for_setup(const Checkpoint& checkpoint, const EngineOptions& own,
                         WorkerChannel& channel);

}  // namespace octavo
