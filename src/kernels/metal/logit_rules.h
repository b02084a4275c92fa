// logit_rules.h (metal) - launches logit_rules.metal: masks and rules of the rows that a device draws.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/metal/encoder.h"
#include "kernels/metal/sampling_params.h"
#include "kernels/types/row_sampling.h"

namespace octavo::metal {

struct RuleCall {
  mx::array logits;  // [R, vocab] float32
  std::span<const RowSampling> rows;
  std::vector<int> ruled;             // rows with rules or a mask
  std::vector<int> masks_of;          // by row of `rows`: its row of `masks`, or -1
  std::optional<mx::array> masks;     // [M, words] uint32
  std::optional<mx::array> previous;  // [P] int32
};

// Returns the changed logits, [rows of `ruled`, vocab].
mx::array rule_logits(const RuleCall& call, Encoder& encoder);

}  // namespace octavo::metal
