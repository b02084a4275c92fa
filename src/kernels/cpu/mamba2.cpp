#include "kernels/cpu/mamba2.h"

#include <algorithm>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {

void mamba2(const StateBatch& batch, MambaJob job) {
  constexpr int64_t kPiece = 4096;  // numbers; a second thread does not pay off below this
  const KernelTable& table = kernels();
  const int64_t rows = batch.cu_seqlens_q[batch.sequences];
  const int64_t numbers = rows * job.heads;
  job.decay = reinterpret_cast<float*>(
      scratch(Scratch::kGates, 2 * numbers * static_cast<int64_t>(sizeof(float))));
  job.step = job.decay + numbers;
  compute_pool().parallel_for(rows, std::max<int64_t>(1, kPiece / job.heads),
                              [&](int64_t begin, int64_t end) {
                                prepare_thread();
                                table.mamba_gates(job, begin, end);
                              });
  const std::vector<StateBatch::Head> heads = batch.heads();
  compute_pool().parallel_for(
      static_cast<int64_t>(heads.size()), 1, [&](int64_t begin, int64_t end) {
        prepare_thread();
        std::byte* memory = scratch(Scratch::kState, table.mamba_scratch(job));
        for (int64_t i = begin; i < end; ++i)
          batch.each_part(heads[static_cast<size_t>(i)],
                          [&](const StateItem& item) { table.mamba_head({item, &job}, memory); });
      });
}

}  // namespace octavo::cpu
