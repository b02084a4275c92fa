// mamba2.h - Mamba-2's recurrence (state space duality): the state of a head is a matrix, kept in
// pages.
#pragma once

#include "kernels/batch_layout.h"
#include "kernels/state_pages.h"

namespace octavo {

// Shapes: H heads of P (the geometry's v_dim), G groups of N (its k_dim); head h uses the b and c of
// group h / (H / G).
struct Mamba2Rows {
  mx::array xbc;      // [T, H * P + 2 * G * N], after the convolution: x heads, b groups, c groups
  mx::array gates;    // [T, W] of xbc's dtype, with the columns below: the output of a projection
  int z_column = 0;   // [H * P]: gates the output
  int dt_column = 0;  // [H]: length of the step
};

struct Mamba2Weights {
  mx::array a_log;    // [H] float32
  mx::array dt_bias;  // [H] float32
  mx::array d;        // [H] float32
};

struct Mamba2Options {
  int groups = 1;
};

struct Mamba2 {
  mx::array out;     // [T, H * P] of xbc's dtype
  StatePages pages;  // the same buffer; the caller rebinds its pages to it
};

// For each head and its rows in order, in float32 throughout:
//   step = softplus(dt + dt_bias), decay = exp(-exp(a_log) * step)
//   S = decay * S + (step * x) b^T;  y = S c + d * x
//   out = y * silu(z)
// A row's bits do not depend on how many rows a call has.
// table: see state_pages.h
Mamba2 mamba2(const StatePages& pages, const Mamba2Rows& rows, const Mamba2Weights& weights,
              const Mamba2Options& options, const BatchLayout& layout, const mx::array& table);

namespace reference {
Mamba2 mamba2(const StatePages& pages, const Mamba2Rows& rows, const Mamba2Weights& weights,
              const Mamba2Options& options, const BatchLayout& layout, const mx::array& table);
}

}  // namespace octavo
