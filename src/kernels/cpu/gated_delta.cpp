#include "kernels/cpu/gated_delta.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kGatesPiece = 4096;  // a second thread does not pay off below this

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
  const std::vector<StateBatch::Head> heads = batch.heads();
  compute_pool().parallel_for(
      static_cast<int64_t>(heads.size()), 1, [&](int64_t begin, int64_t end) {
        prepare_thread();
        std::byte* memory = scratch(Scratch::kState, table.delta_scratch(job));
        for (int64_t i = begin; i < end; ++i)
          batch.each_part(heads[static_cast<size_t>(i)],
                          [&](const StateItem& item) { table.delta_head({item, &job}, memory); });
      });
}

}  // namespace octavo::cpu
