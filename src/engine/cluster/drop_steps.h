// drop_steps.h - drops the steps of the other ranks. No MLX.
#pragma once

#include "base/log.h"
#include "distributed/cluster.h"

namespace octavo {

// For StepRunner::drop(), which does not throw: if the cluster has failed, every later step fails too.
inline void drop_steps(Cluster& cluster) {
  try {
    cluster.drop();
  } catch (const ClusterError& error) {
    spdlog::error("{}", error.what());
  }
}

}  // namespace octavo
