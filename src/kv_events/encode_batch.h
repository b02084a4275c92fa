// encode_batch.h - changes of the prefix cache as vLLM's KVEventBatch in msgpack. No MLX.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "kv_events/change.h"
#include "kv_events/config.h"

namespace octavo::kv_events {

// What consumers need to know of a group.
struct GroupFacts {
  std::string kind;      // vLLM's kv_cache_spec_kind
  int window = 0;        // > 0: of sliding-window attention
  int block_tokens = 0;  // of one block
};

// By group of the plan; the last one is of snapshots, if layers have a state.
std::vector<GroupFacts> group_facts(const CachePlan& plan);

// [seconds since 1970, events, data parallel rank 0]. Blocks that follow each other become one
// event. In array form the keys of adapter and salt are bare texts, as vLLM's were then.
std::vector<uint8_t> encode_batch(double seconds, const std::deque<Change>& changes,
                                  const std::vector<GroupFacts>& groups, EventForm form);

}  // namespace octavo::kv_events
