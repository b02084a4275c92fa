// set_up_ranks.h - tells the other ranks what to load, and connects to them. No MLX.
#pragma once

#include <memory>

#include "distributed/cluster.h"
#include "engine/cluster/cluster_setup.h"
#include "engine/engine_options.h"
#include "models/model_description.h"

namespace octavo {

// What does not depend on how the model is divided.
ClusterSetup setup_of(const ModelDescription& model, const EngineOptions& options,
                      const MemoryPlan& memory);

// `cache`: of the steps. Throws SetupError.
std::unique_ptr<TensorLinks> set_up_ranks(Cluster& cluster, const ClusterSetup& setup,
                                          const CachePlan& cache, const DecoderPlan& model);

}  // namespace octavo
