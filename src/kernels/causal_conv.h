// causal_conv.h - depthwise convolution over a sequence's rows; its last rows are kept in pages.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/batch_layout.h"
#include "kernels/state_pages.h"

namespace octavo {

enum class ConvActivation : uint8_t { kNone, kSilu };

struct ConvWeights {
  mx::array taps;  // [K, C], any float type: row K - 1 applies to the row itself
  std::optional<mx::array> bias = {};  // [C] of the taps' type
};

struct ConvOptions {
  int first_column = 0;  // of x
  ConvActivation activation = ConvActivation::kNone;
};

struct Convolved {
  mx::array y;       // [T, C] of x's dtype
  StatePages pages;  // the same buffer; the caller rebinds its pages to it
};

// y[t] = activation(bias + sum over j of taps[j] * x[t - (K - 1) + j]), in float32 and in the order
// of j. Rows before the batch's first come from the state. K = conv_rows + 1 and C = channels() of
// the pages' geometry.
//   x:     [T, first_column + C or more] of the geometry's conv_dtype
//   table: see state_pages.h
Convolved causal_conv(const StatePages& pages, const mx::array& x, const ConvWeights& weights,
                      const ConvOptions& options, const BatchLayout& layout,
                      const mx::array& table);

namespace reference {
Convolved causal_conv(const StatePages& pages, const mx::array& x, const ConvWeights& weights,
                      const ConvOptions& options, const BatchLayout& layout,
                      const mx::array& table);
}

}  // namespace octavo
