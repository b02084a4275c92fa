// explain_hit.h - why no more of a prompt was cached. No MLX. Engine thread only.
#pragma once

#include "cache/cache_plan.h"
#include "scheduler/prompt_history.h"
#include "scheduler/sequence.h"

namespace octavo {

PromptHistory::Owner owner_of(const Sequence& sequence);

// The sequence has taken `hit` tokens from the prefix cache, which is switched on or not, and is
// not in the history yet.
CacheReport explain_hit(Sequence& sequence, int hit, bool enabled, const PromptHistory& history,
                        const CachePlan& plan);

}  // namespace octavo
