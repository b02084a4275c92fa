// split_changes.h - puts blocks with extra keys into batches of their own. No MLX.
#pragma once

#include <deque>
#include <vector>

#include "kv_events/change.h"

namespace octavo::kv_events {

// The same changes in the same order. An indexer that cannot decode a kind of extra key loses the
// whole batch, so a block with extra keys shares one only with the blocks that follow it.
std::vector<std::deque<Change>> split_changes(std::deque<Change> changes);

}  // namespace octavo::kv_events
