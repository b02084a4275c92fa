#include "engine/runner.h"

#include "base/error.h"
#include "kernels/sampling.h"

namespace octavo {
namespace {

mx::array int_array(const std::vector<int32_t>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

}  // namespace

Runner::Runner(const DecoderModel& model, KvStore& kv, KernelPath path)
    : model_(model), kv_(kv), path_(path) {}

mx::array Runner::queue(const Batch& batch) {
  const BatchLayout layout{.positions = int_array(batch.positions),
                           .cu_seqlens_q = int_array(batch.cu_seqlens_q),
                           .context_lens = int_array(batch.context_lens)};
  std::vector<mx::array> tables;
  for (const auto& table : batch.block_tables) {
    tables.emplace_back(table.pages.begin(), mx::Shape{batch.sequences(), table.columns},
                        mx::int32);
  }
  const mx::array embedded = model_.embed(int_array(batch.tokens), path_);
  const mx::array hidden = model_.forward(embedded, layout, tables, kv_, path_);
  // Only these rows meet the vocabulary: it is the widest product of the step.
  return mx::take(hidden, int_array(batch.logit_rows), 0);
}

mx::array Runner::logits(const Batch& batch) {
  const mx::array hidden = queue(batch);
  if (batch.logit_rows.empty()) {
    mx::eval(kv_.buffers());
    return mx::zeros({0, model_.plan().vocab}, mx::float32);
  }
  mx::array result = model_.logits(hidden, path_);
  result.eval();
  return result;
}

std::vector<TokenId> Runner::run(const Batch& batch) {
  OCTAVO_CHECK(batch.sampling.size() == batch.logit_rows.size());
  const mx::array hidden = queue(batch);
  if (batch.logit_rows.empty()) {
    mx::eval(kv_.buffers());
    return {};
  }
  mx::array tokens = sample(model_.logits(hidden, path_), batch.sampling);
  tokens.eval();
  return {tokens.data<int32_t>(), tokens.data<int32_t>() + tokens.size()};
}

}  // namespace octavo
