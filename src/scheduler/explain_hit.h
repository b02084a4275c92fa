// explain_hit.h - explains why a prefix hit was not longer. No MLX. Engine thread only.
#pragma once

#include <span>
#include <vector>

#include "cache/cache_plan.h"
#include "scheduler/prompt_history.h"
#include "scheduler/sequence.h"

namespace octavo {

PromptHistory::Owner owner_of(const Sequence& sequence);

// The sequence's tokens. With images, a copy in `room` in which numbers that stand for their identifiers
// replace theirs.
std::span<const TokenId> history_tokens(const Sequence& sequence, std::vector<TokenId>& room);

// `hit`: tokens the sequence has taken from the prefix cache. `enabled`: whether there is one. The
// sequence must not be in the history yet.
CacheReport explain_hit(Sequence& sequence, int hit, bool enabled, const PromptHistory& history,
                        const CachePlan& plan);

}  // namespace octavo
