// runner.h - turns a Batch into arrays and runs the model over it. Engine thread only.
#pragma once

#include <vector>

#include "cache/kv_store.h"
#include "engine/batch.h"
#include "models/decoder_model.h"

namespace octavo {

class Runner {
 public:
  // Both must outlive the runner.
  Runner(const DecoderModel& model, KvStore& kv, KernelPath path);

  // Runs the step and returns the token drawn for each of batch.sampling.
  std::vector<TokenId> run(const Batch& batch);

  // Runs the step and returns the float32 logits [logit_rows, vocab], evaluated.
  mx::array logits(const Batch& batch);

 private:
  // Queues the step. With no logit rows the result has no rows, and the writes are pending in the
  // cache.
  mx::array queue(const Batch& batch);

  const DecoderModel& model_;
  KvStore& kv_;
  KernelPath path_;
};

}  // namespace octavo
