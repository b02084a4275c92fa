// logit_rules.h (cpu) - changes a row's logits as a request's rules and the sequence so far ask. No
// MLX.
#pragma once

#include <span>

#include "kernels/types/row_sampling.h"

namespace octavo::cpu {

// What lies past the end of `allowed` is banned too.
void ban_all_but(std::span<float> logits, std::span<const uint32_t> allowed);

// In the order row_sampling.h states; what is banned becomes minus infinity. `previous`: the tokens
// history.pending is an entry of. Ids outside the vocabulary are passed over, and what lies past
// the end of `allowed` is banned. The time grows with the history, not with the vocabulary, but for
// `allowed`.
void apply_rules(std::span<float> logits, const LogitRules& rules, const RowHistory& history,
                 std::span<const TokenId> previous);

}  // namespace octavo::cpu
