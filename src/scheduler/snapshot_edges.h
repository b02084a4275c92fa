// snapshot_edges.h - where in a prompt the state of its layers is worth keeping. No MLX.
#pragma once

#include <span>
#include <vector>

#include "base/token_id.h"
#include "cache/cache_plan.h"

namespace octavo {

// Positions, rising, at full pages of every group: behind the first message (other conversations
// share it), behind the last two, and the last one before the prompt's end (the next turn goes on
// there). A message ends with a stop token. Empty when no layer has a state.
std::vector<int> snapshot_edges(std::span<const TokenId> prompt,
                                std::span<const TokenId> stop_tokens, const CachePlan& plan);

}  // namespace octavo
