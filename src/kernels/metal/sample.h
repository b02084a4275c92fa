// sample.h (metal) - dispatch of sampling. The generator's numbers are made here, by the host: they
// depend on nothing that the device knows.
#pragma once

#include <span>
#include <vector>

#include "kernels/metal/encoder.h"
#include "kernels/metal/sample_params.h"
#include "kernels/row_sampling.h"

namespace octavo::metal {

// Rows without rules, logprobs and hashes; of the others, where `drawn` is false, nothing is
// written. logits: [R, vocab] float32, vocab <= kMostLogits   tokens: [R] int32, allocated
void sample(const mx::array& logits, std::span<const RowSampling> rows,
            const std::vector<bool>& drawn, const mx::array& tokens, Encoder& encoder);

// out: [T] int32, allocated
void place_tokens(const mx::array& tokens, const mx::array& sources, const mx::array& previous,
                  const mx::array& out, Encoder& encoder);

}  // namespace octavo::metal
