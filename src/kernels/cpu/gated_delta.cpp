#include "kernels/cpu/gated_delta.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kGatesPiece = 4096;  // a second thread does not pay off below this

// A value head of one sequence.
struct HeadOfSequence {
  int64_t sequence;
  int64_t head;
  int64_t rows;
};

std::vector<HeadOfSequence> heads_of(const StateBatch& batch, const DeltaJob& job) {
  std::vector<HeadOfSequence> heads;
  heads.reserve(static_cast<size_t>(batch.sequences * job.value_heads));
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t rows = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
    if (rows == 0) continue;
    for (int64_t head = 0; head < job.value_heads; ++head) heads.push_back({s, head, rows});
  }
  // The longest first, so that the threads finish together.
  std::stable_sort(
      heads.begin(), heads.end(),
      [](const HeadOfSequence& a, const HeadOfSequence& b) { return a.rows > b.rows; });
  return heads;
}

void run_head(const StateBatch& batch, const DeltaJob& job, const HeadOfSequence& of,
              std::byte* memory) {
  const int64_t parts = batch.parts(of.sequence);
  for (int64_t part = 0; part < parts; ++part) {
    const StateBlock block = batch.head(of.sequence, of.head, part);
    kernels().delta_head({.job = &job,
                          .head = of.head,
                          .row_begin = batch.part_begin(of.sequence, part),
                          .row_end = batch.part_end(of.sequence, part),
                          .from = reinterpret_cast<const float*>(block.from),
                          .to = reinterpret_cast<float*>(block.to)},
                         memory);
  }
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
  const std::vector<HeadOfSequence> heads = heads_of(batch, job);
  compute_pool().parallel_for(
      static_cast<int64_t>(heads.size()), 1, [&](int64_t begin, int64_t end) {
        prepare_thread();
        std::byte* memory = scratch(Scratch::kDelta, table.delta_scratch(job));
        for (int64_t i = begin; i < end; ++i)
          run_head(batch, job, heads[static_cast<size_t>(i)], memory);
      });
}

}  // namespace octavo::cpu
