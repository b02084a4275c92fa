#include "kernels/cpu/qkv_write.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/portable_math.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/pieces.h"

namespace octavo::cpu {
namespace {

std::vector<float> scales_of(const PositionScale& scale, int64_t tokens) {
  std::vector<float> scales;
  scales.reserve(static_cast<size_t>(tokens));
  for (int64_t t = 0; t < tokens; ++t) {
    const float turns = std::floor(static_cast<float>(scale.positions[t]) / scale.period);
    const double log = portable_log(static_cast<double>(1 + turns));
    scales.push_back(1 + scale.beta * static_cast<float>(log));
  }
  return scales;
}

}  // namespace

void qkv_write(const QkvWriteArgs& args) {
  QkvJob job = args.rows;
  job.layout = page_layout(args.batch.geometry);
  std::vector<TokenSlot> slots;
  if (args.batch.pages != nullptr) {
    slots = token_slots(args.batch, args.tokens);
    job.slots = slots.data();
  }
  std::vector<float> scales;
  if (args.position_scale.beta != 0) {
    scales = scales_of(args.position_scale, args.tokens);
    job.q_scale = scales.data();
  }
  const PageGeometry& g = args.batch.geometry;
  OCTAVO_CHECK(job.q_dim <= kLargestHead && g.k_dim <= kLargestHead && g.v_dim <= kLargestHead);
  const int64_t row_elements = job.q_heads * job.q_dim + g.kv_heads * (g.k_dim + g.v_dim);
  const int64_t grain = rows_per_piece(row_elements);
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
