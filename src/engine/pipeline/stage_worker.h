// stage_worker.h - a rank other than 0 of a model that is divided by layers. Engine thread only.
#pragma once

#include <memory>

#include "engine/cluster/rank_model.h"
#include "engine/engine.h"
#include "engine/pipeline/stage_runner.h"
#include "models/kv_store.h"

namespace octavo {

// The rank's layers, pages and kernels.
class StageWorker {
 public:
  // Loads the layers. The channel must outlive this object. Throws SetupError.
  StageWorker(RankModel rank_model, WorkerChannel& channel, Engine::Progress progress);

  // Until rank 0 ends the cluster. Throws ClusterError or LinkError if another rank is gone.
  void run();

 private:
  size_t rank() const { return static_cast<size_t>(channel_.rank()); }
  uint64_t bytes_of_pages() const;
  CachePlan plan_cache() const;
  std::unique_ptr<TensorLinks> connect_links() const;
  DecoderModel load();

  WorkerChannel& channel_;
  RankModel rank_model_;
  StageRange stage_;
  CachePlan cache_;
  std::unique_ptr<TensorLinks> links_;
  WeightSource source_;
  DecoderModel model_;
  KvStore kv_;
  std::unique_ptr<RowsSender> sender_;  // null on the last rank
  Runner runner_;
  StageRunner steps_;
};

}  // namespace octavo
