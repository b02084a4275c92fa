// tensor_worker.h - a rank other than 0 of a model whose matrices are divided by outputs. Engine thread
// only.
#pragma once

#include <memory>

#include "engine/cluster/rank_model.h"
#include "engine/engine.h"
#include "engine/runner.h"
#include "models/kv_store.h"

namespace octavo {

// The rank's part of every layer, its pages and kernels.
class TensorWorker {
 public:
  // Loads the part. The channel must outlive this object. Throws SetupError.
  TensorWorker(RankModel rank_model, WorkerChannel& channel, Engine::Progress progress);

  // Until rank 0 ends the cluster. Throws ClusterError or LinkError if another rank is gone.
  void run();

 private:
  uint64_t bytes_of_pages() const;
  std::unique_ptr<TensorLinks> connect_links() const;
  DecoderModel load();

  WorkerChannel& channel_;
  RankModel rank_model_;
  ModelDescription part_;
  CachePlan cache_;
  std::unique_ptr<TensorLinks> links_;
  LinkExchange exchange_;
  WeightSource source_;
  DecoderModel model_;
  KvStore kv_;
  Runner runner_;
};

}  // namespace octavo
