// sampling.h (metal) - launches sampling.metal and place_tokens.metal. The host computes the random
// numbers, because they do not depend on device data.
#pragma once

#include <optional>
#include <span>

#include "kernels/metal/encoder.h"
#include "kernels/metal/sampling_params.h"
#include "kernels/types/row_sampling.h"

namespace octavo::metal {

struct SampleCall {
  mx::array logits;  // [R, vocab] float32, vocab <= kMostLogits
  std::span<const RowSampling> rows;
  std::optional<mx::array> masks = {};     // [M, words] uint32, of the rows with a mask, in order
  std::optional<mx::array> previous = {};  // [P] int32, if a row's history is pending
  mx::array tokens;                        // [R] int32, allocated
};
void sample(const SampleCall& call, Encoder& encoder);

struct PlaceTokensCall {
  mx::array tokens;
  mx::array sources;
  mx::array previous;
  mx::array out;  // [T] int32, allocated
};
void place_tokens(const PlaceTokensCall& call, Encoder& encoder);

}  // namespace octavo::metal
