// run_worker.h - a rank of a cluster other than 0: loads its layers and computes. Shows no MLX.
#pragma once

#include "distributed/worker_channel.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "models/format/checkpoint.h"

namespace octavo {

// Loads what rank 0 asks for and computes until rank 0 ends the cluster. All MLX calls are made on
// the calling thread. Of the options, only those about the machine are used, and --merge-adapter;
// the others are rank 0's. Throws SetupError, which rank 0 reports, if this rank cannot start, and
// ClusterError or LinkError if another rank is gone.
void run_worker(const Checkpoint& checkpoint, const EngineOptions& options, WorkerChannel& channel,
                Engine::Progress progress);

}  // namespace octavo
