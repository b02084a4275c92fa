// logit_rules.h (cpu) - applies a request's rules (penalties, bias, bans) to a row's logits. No
// MLX.
#pragma once

#include <span>

#include "kernels/types/row_sampling.h"

namespace octavo::cpu {

// Tokens past the end of `allowed` are banned too.
void ban_all_but(std::span<float> logits, std::span<const uint32_t> allowed);

// Applies the rules in the order of row_sampling.h; banned logits become minus infinity.
// `previous`: the tokens that history.pending indexes. Ids outside the vocabulary are ignored;
// tokens past the end of `allowed` are banned. Takes time in proportion to the history, and to the
// vocabulary only if `allowed` is used.
void apply_rules(std::span<float> logits, const LogitRules& rules, const RowHistory& history,
                 std::span<const TokenId> previous);

}  // namespace octavo::cpu
