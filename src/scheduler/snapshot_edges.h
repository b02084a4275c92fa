// snapshot_edges.h - the positions in a prompt where a snapshot of the recurrent state is useful.
// No MLX.
#pragma once

#include <span>
#include <vector>

#include "base/token_id.h"
#include "cache/cache_plan.h"

namespace octavo {

// Ascending positions at full pages of every group: after the first message (shared by other
// conversations), after the last two, and the last one before the end of the prompt (where the next
// turn continues). A message ends with a stop token. Empty if no layer has a state.
std::vector<int> snapshot_edges(std::span<const TokenId> prompt,
                                std::span<const TokenId> stop_tokens, const CachePlan& plan);

}  // namespace octavo
