// gated_delta.h - the gated delta rule: linear attention whose state is a matrix per value head,
// kept in pages.
#pragma once

#include "kernels/batch_layout.h"
#include "kernels/state_pages.h"

namespace octavo {

// Shapes: Hk key heads of Dk, Hv value heads of Dv; value head h uses key head h / (Hv / Hk).
struct GatedDeltaRows {
  mx::array qkv;  // [T, 2 * Hk * Dk + Hv * Dv], after the convolution: q, k, then v heads
  mx::array
      gates;  // [T, W] of qkv's dtype, with the columns below: the output of a joined projection
  int z_column = 0;  // [Hv * Dv]: gates the output
  int a_column = 0;  // [Hv]: decay
  int b_column = 0;  // [Hv]: strength of the update
};

struct GatedDeltaWeights {
  mx::array a_log;    // [Hv] float32
  mx::array dt_bias;  // [Hv] float32
  mx::array norm;     // [Dv], any float type
};

struct GatedDeltaOptions {
  int key_heads = 0;
  float norm_eps = 1e-6f;
};

struct GatedDelta {
  mx::array out;     // [T, Hv * Dv] of qkv's dtype
  StatePages pages;  // the same buffer; the caller rebinds its pages to it
};

// For each value head and its rows in order, in float32 throughout:
//   q, k = q / |q| / sqrt(Dk), k / |k|, with 1e-6 added to the sum of squares
//   decay = exp(-exp(a_log) * softplus(a + dt_bias)), beta = sigmoid(b)
//   S = decay * S;  S += (beta * (v - S k)) k^T;  y = S q
//   out = rms_norm(y) * norm * silu(z)
// A row's bits do not depend on how many rows a call has.
// table: see state_pages.h
GatedDelta gated_delta(const StatePages& pages, const GatedDeltaRows& rows,
                       const GatedDeltaWeights& weights, const GatedDeltaOptions& options,
                       const BatchLayout& layout, const mx::array& table);

namespace reference {
GatedDelta gated_delta(const StatePages& pages, const GatedDeltaRows& rows,
                       const GatedDeltaWeights& weights, const GatedDeltaOptions& options,
                       const BatchLayout& layout, const mx::array& table);
}

}  // namespace octavo
