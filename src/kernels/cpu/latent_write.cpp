#include "kernels/cpu/latent_write.h"

#include <algorithm>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/head_linear.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/pieces.h"

namespace octavo::cpu {
namespace {

LatentJob job_of(const LatentWriteArgs& args) {
  LatentJob job;
  job.latent = args.latent;
  job.dtype = args.batch.geometry.dtype;
  job.norm = args.norm;
  job.norm_dtype = args.norm_dtype;
  job.eps = args.eps;
  job.pairs = args.rope.pairs;
  job.layout = page_layout(args.batch.geometry);
  job.q = args.q;
  job.heads = args.heads;
  job.q_dim = args.q_dim;
  job.q_out = args.q_out;
  return job;
}

}  // namespace

void latent_write(const LatentWriteArgs& args) {
  const PageGeometry& g = args.batch.geometry;
  OCTAVO_CHECK(g.values_in_keys && g.kv_heads == 1 && g.k_dim == g.v_dim + 2 * args.rope.pairs);
  OCTAVO_CHECK(g.k_dim <= kLargestHead);
  head_linear({.x = args.q,
               .dtype = g.dtype,
               .rows = args.tokens,
               .heads = args.heads,
               .x_stride = args.q_dim,
               .weight = args.absorbed,
               .out = args.q_out,
               .out_stride = g.k_dim});
  const std::vector<TokenSlot> slots = token_slots(args.batch, args.tokens);
  LatentJob job = job_of(args);
  job.slots = slots.data();
  const int64_t row_elements = g.k_dim + args.heads * 2 * job.pairs;
  const int64_t grain = rows_per_piece(row_elements);
  compute_pool().parallel_for(args.tokens, grain, [&](int64_t begin, int64_t end) {
    prepare_thread();
    Rotations rotations;
    rotations.fill(args.rope, begin, end);
    LatentJob piece = job;
    piece.cosine = rotations.cosine.data() - begin * job.pairs;
    piece.sine = rotations.sine.data() - begin * job.pairs;
    kernels().latent_rows(piece, begin, end);
  });
}

}  // namespace octavo::cpu
