// latent_write.h - everything between the projections of multi-head latent attention and the
// attention itself, in one operation.
//
// Absorbed form: a head's keys are W_k[h] c for the latent row c of a token. Instead of computing
// them, the query is mapped to the latent space once, q' = W_k[h]^T q. Attention then returns
// weighted latents, which head_linear() with W_v maps to values.
#pragma once

#include <optional>

#include "kernels/qkv_write.h"
#include "kernels/weights/weight.h"

namespace octavo {

// The pages hold one row [rank | rope dims] per token, rank = v_dim, with values in keys.
struct LatentOptions {
  mx::array norm;  // [rank]: RMS norm of the latent
  float norm_eps = 1e-6f;
  mx::array inverse_frequencies;  // [rope dims / 2] float32: see rope.h
  float rope_magnitude = 1;
  // [rope dims / 2] int32: as QkvOptions::rope_axes.
  std::optional<mx::array> rope_axes = {};
};

// A step's rows as the projections return them, of the pages' dtype.
struct LatentRows {
  mx::array q;       // [T, heads, q_dim]: unrotated numbers first, then the rope dims
  mx::array latent;  // [T, rank + rope dims]
};

// Norms and rotates the latent rows and writes them into the pages in place. Maps q to
// [T, heads, rank + rope dims], ready for paged_attention.
// absorbed: [heads * rank, q_dim - rope dims], the heads' W_k[h]^T stacked; rank a multiple of 16
QkvWritten latent_write(const KvPages& pages, const LatentRows& rows, const Weight& absorbed,
                        const BatchLayout& layout, const mx::array& block_tables,
                        const LatentOptions& options);

namespace reference {
QkvWritten latent_write(const KvPages& pages, const LatentRows& rows, const Weight& absorbed,
                        const BatchLayout& layout, const mx::array& block_tables,
                        const LatentOptions& options);
}

}  // namespace octavo
