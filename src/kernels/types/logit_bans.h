// logit_bans.h - the tokens that a request's rules ban at one position. No MLX.
#pragma once

#include <vector>

#include "kernels/types/row_sampling.h"

namespace octavo {

struct Ban {
  TokenId token;
  TokenId after = -1;  // only if the pending token is this one; -1: in any case
};

// By bad_words and min_tokens; `allowed` and masks are separate. Ids may be outside the vocabulary.
std::vector<Ban> bans_of(const LogitRules& rules, const RowHistory& history);

}  // namespace octavo
