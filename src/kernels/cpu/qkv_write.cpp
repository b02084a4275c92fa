#include "kernels/cpu/qkv_write.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/kernel_table.h"

namespace octavo::cpu {
namespace {

constexpr int64_t kPieceElements = 16384;  // below this a second thread costs more than it brings

std::vector<TokenSlot> slots_of(const PagedBatch& batch, int64_t tokens) {
  const int64_t block = batch.geometry.block_tokens;
  std::vector<TokenSlot> slots;
  slots.reserve(static_cast<size_t>(tokens));
  for (int64_t s = 0; s < batch.sequences; ++s) {
    const int64_t count = batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s];
    const int64_t start = batch.context_lens[s] - count;
    OCTAVO_CHECK(start >= 0);
    for (int64_t position = start; position < start + count; ++position) {
      const int64_t column = position / block;
      OCTAVO_CHECK(column < batch.table_columns);
      const int64_t page = batch.block_tables[s * batch.table_columns + column];
      OCTAVO_CHECK(page >= 0 && page < batch.page_count);
      slots.push_back({batch.pages + page * batch.page_stride, position - column * block});
    }
  }
  OCTAVO_CHECK(static_cast<int64_t>(slots.size()) == tokens);
  return slots;
}

// Cosines and sines of a run of tokens: [tokens, pairs] each.
struct Rotations {
  std::vector<float> cosine;
  std::vector<float> sine;

  void fill(const RopeJob& rope, int64_t begin, int64_t end) {
    const auto count = static_cast<size_t>((end - begin) * rope.pairs);
    cosine.resize(count);
    sine.resize(count);
    size_t at = 0;
    for (int64_t t = begin; t < end; ++t) {
      for (int64_t i = 0; i < rope.pairs; ++i, ++at) {
        const float angle = static_cast<float>(rope.positions[t]) * rope.inverse_frequencies[i];
        cosine[at] = std::cos(angle) * rope.magnitude;
        sine[at] = std::sin(angle) * rope.magnitude;
      }
    }
  }
};

std::vector<float> scales_of(const PositionScale& scale, int64_t tokens) {
  std::vector<float> scales;
  scales.reserve(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    const float turns = std::floor(static_cast<float>(scale.positions[t]) / scale.period);
    scales.push_back(1 + scale.beta * std::log(1 + turns));
  }
  return scales;
}

QkvJob job_of(const QkvWriteArgs& args) {
  QkvJob job;
  job.q = args.q;
  job.k = args.k;
  job.v = args.v;
  job.q_stride = args.q_stride;
  job.k_stride = args.k_stride;
  job.v_stride = args.v_stride;
  job.dtype = args.dtype;
  job.q_heads = args.q_heads;
  job.q_dim = args.q_dim;
  job.q_norm = args.q_norm;
  job.k_norm = args.k_norm;
  job.norms_rows = args.norms_rows;
  job.norms_values = args.norms_values;
  job.norm_dtype = args.norm_dtype;
  job.eps = args.eps;
  job.q_out = args.q_out;
  job.layout = page_layout(args.batch.geometry);
  return job;
}

}  // namespace

void qkv_write(const QkvWriteArgs& args) {
  QkvJob job = job_of(args);
  std::vector<TokenSlot> slots;
  if (args.batch.pages != nullptr) {
    slots = slots_of(args.batch, args.tokens);
    job.slots = slots.data();
  }
  std::vector<float> scales;
  if (args.position_scale.beta != 0) {
    scales = scales_of(args.position_scale, args.tokens);
    job.q_scale = scales.data();
  }
  const PageGeometry& g = args.batch.geometry;
  OCTAVO_CHECK(args.q_dim <= kLargestHead && g.k_dim <= kLargestHead && g.v_dim <= kLargestHead);
  const int64_t row_elements = args.q_heads * args.q_dim + g.kv_heads * (g.k_dim + g.v_dim);
  const int64_t grain = std::max<int64_t>(1, kPieceElements / std::max<int64_t>(1, row_elements));
  const RopeJob& rope = args.rope;
  compute_pool().parallel_for(args.tokens, grain, [&](int64_t begin, int64_t end) {
    prepare_thread();
    QkvJob piece = job;
    Rotations rotations;
    if (rope.pairs > 0) {
      rotations.fill(rope, begin, end);
      piece.pairs = rope.pairs;
      piece.cosine = rotations.cosine.data() - begin * rope.pairs;
      piece.sine = rotations.sine.data() - begin * rope.pairs;
    }
    kernels().qkv_rows(piece, begin, end);
  });
}

}  // namespace octavo::cpu
