// explain_hit.h - explains why a prefix hit was not longer. No MLX. Engine thread only.
#pragma once

#include "cache/cache_plan.h"
#include "scheduler/prompt_history.h"
#include "scheduler/sequence.h"

namespace octavo {

PromptHistory::Owner owner_of(const Sequence& sequence);

// `hit`: tokens the sequence has taken from the prefix cache. `enabled`: whether there is one. The
// sequence must not be in the history yet.
CacheReport explain_hit(Sequence& sequence, int hit, bool enabled, const PromptHistory& history,
                        const CachePlan& plan);

}  // namespace octavo
