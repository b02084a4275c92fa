// cluster_start.h - how a process becomes a rank of a cluster. Shows no MLX.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cli/distributed/cluster_flags.h"
#include "cli/distributed/network_address.h"
#include "distributed/cluster.h"

namespace octavo {

struct ModelFlags;

struct WorkerSettings {
  int rank = 1;
  NetworkAddress rank_0 = {};  // numeric
  NetworkAddress listen = {};  // an empty host: chosen
  std::string secret = {};
  std::chrono::milliseconds deadline{5000};
  std::chrono::milliseconds connect_timeout{600'000};
  bool allow_public = false;
};

// The memory that the flags allow this process to use.
uint64_t rank_memory(const ModelFlags& flags);

// Listens, says where, and waits until all workers have joined. Null with one rank. Throws
// SetupError.
std::unique_ptr<Cluster> form_cluster(const ClusterSettings& settings, const ModelFlags& flags,
                                      const std::function<void(const std::string&)>& say);

// Joins rank 0, loads this rank's part of the model and computes until rank 0 ends the cluster. Throws
// SetupError if it cannot join, or if another rank is gone. After ModelFlags::find().
void run_cluster_worker(const WorkerSettings& settings, const ModelFlags& flags);

}  // namespace octavo
