#include "kernels/cpu/gated_delta.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kGatesPiece = 4096;  // a second thread does not pay off below this

std::vector<DeltaItem> items_of(const StateBatch& batch, const DeltaJob& job) {
  std::vector<DeltaItem> items;
  items.reserve(static_cast<size_t>(batch.sequences * job.value_heads));
  for (int64_t s = 0; s < batch.sequences; ++s) {
    DeltaItem item;
    item.job = &job;
    item.row_begin = batch.cu_seqlens_q[s];
    item.row_end = batch.cu_seqlens_q[s + 1];
    if (item.row_begin == item.row_end) continue;
    for (item.head = 0; item.head < job.value_heads; ++item.head) {
      const StateBlock block = batch.head(s, item.head);
      item.from = reinterpret_cast<const float*>(block.from);
      item.to = reinterpret_cast<float*>(block.to);
      items.push_back(item);
    }
  }
  // The longest first, so that the threads finish together.
  std::stable_sort(items.begin(), items.end(), [](const DeltaItem& a, const DeltaItem& b) {
    return a.row_end - a.row_begin > b.row_end - b.row_begin;
  });
  return items;
}

}  // namespace

void gated_delta(const StateBatch& batch, DeltaJob job) {
  const KernelTable& table = kernels();
  const int64_t rows = batch.cu_seqlens_q[batch.sequences];
  const int64_t numbers = rows * job.value_heads;
  job.decay = reinterpret_cast<float*>(
      scratch(Scratch::kGates, 2 * numbers * static_cast<int64_t>(sizeof(float))));
  job.beta = job.decay + numbers;
  compute_pool().parallel_for(rows, std::max<int64_t>(1, kGatesPiece / job.value_heads),
                              [&](int64_t begin, int64_t end) {
                                prepare_thread();
                                table.delta_gates(job, begin, end);
                              });
  std::vector<DeltaItem> items = items_of(batch, job);
  compute_pool().parallel_for(
      static_cast<int64_t>(items.size()), 1, [&](int64_t begin, int64_t end) {
        prepare_thread();
        std::byte* memory = scratch(Scratch::kDelta, table.delta_scratch(job));
        for (int64_t i = begin; i < end; ++i)
          table.delta_head(items[static_cast<size_t>(i)], memory);
      });
}

}  // namespace octavo::cpu
