// cache_plan.h - how a model's layers share one pool of page ids. No MLX.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "cache/cache_spec.h"
#include "kernels/types/state_geometry.h"

namespace octavo {

// Layers with the same kind of cache, one per slot. A page id leased for a group is that group's
// page in every slot's buffer.
struct CacheGroup {
  SoftmaxSpec spec;
  int block_tokens = 0;     // tokens a page of this group holds
  std::vector<int> layers;  // slot -> layer, -1: none; at most CachePlan::slots entries

  PageGeometry geometry() const { return spec.geometry(block_tokens); }
  // Page ids that hold `tokens` tokens of one sequence.
  int pages_for(int tokens) const { return spec.pages_for(tokens, block_tokens); }
  // The most page ids held at once while growing to `tokens` tokens, in steps of up to
  // `step_tokens` rows with two in flight. A window releases pages on the way.
  int pages_held(int tokens, int step_tokens) const;
};

// The layers with recurrent state, arranged in rows of one layer per slot (LayerPlace). In a slot's
// pages the heads of all rows follow each other, then the convolutions, so that only the last page of
// each is padded.
struct StateGroup {
  StateSpec spec;
  std::vector<int> layers;  // in order
  int rows = 0;
  int heads_per_page = 1;
  int units_per_page = 1;
  int conv_column = 0;  // pages of heads; the convolutions' follow
  int pages = 0;        // page ids of one copy of a sequence's state

  // Of the layer in row `row`.
  StateGeometry geometry(int row) const;
};

// Copies of its state that one sequence without drafts can hold at once: the one the step in flight
// reads, the one it writes and keeps as a snapshot, and the one the next step writes.
inline constexpr int kStateCopies = 3;

struct LayerPlace {
  int group;  // the state's table comes after those of the groups
  int slot;
  int row = 0;  // of StateGroup
};

// The slots of one stage of a model that is divided over several machines.
struct SlotRange {
  int first = 0;
  int count = 0;  // 0: no layer of the stage keeps anything

  int end() const { return first + count; }
};

struct CachePlan {
  int slots = 0;          // buffers; buffer i serves at most one layer of every group
  size_t page_bytes = 0;  // of one page in one buffer: the maximum over all groups
  std::vector<CacheGroup> groups;
  std::optional<StateGroup> state = {};
  int state_drafts = 0;            // most drafts of a step whose states one sequence keeps
  std::vector<LayerPlace> places;  // by layer
  std::vector<SlotRange> stages;   // one after the other; all slots if the model is not divided

  int state_pages() const { return state ? state->pages : 0; }
  // A step with drafts runs alone: it reads one copy and writes one for its first row and one for
  // each draft.
  int state_copies() const {
    return state_drafts + 2 > kStateCopies ? state_drafts + 2 : kStateCopies;
  }
  // Full pages of every group end together at multiples of this many tokens.
  int common_tokens() const;

  // The same plan with the slots of one stage only, for counting that machine's memory. Places keep
  // their slots.
  CachePlan of_stage(size_t stage) const;

  // Bytes of one page id over all buffers.
  size_t bytes_per_page_id() const { return page_bytes * static_cast<size_t>(slots); }
  // Page ids that `tokens` tokens of one sequence fill, over all groups, and the most held at once
  // while growing to them.
  int pages_for(int tokens) const;
  int pages_held(int tokens, int step_tokens) const;
  // Bytes per token in a long sequence, including padding, and bytes per sequence regardless of its
  // length.
  double bytes_per_token() const;
  size_t bytes_per_state() const {
    return static_cast<size_t>(state_pages()) * bytes_per_page_id();
  }
};

// Splits the layers of each spec into groups of one size, common to all specs: the size that wastes
// the fewest slots (the larger one on a tie). All pages have the same size: `block_tokens` tokens
// of the widest spec, or one head's state if that is larger. A narrower spec fits more tokens into
// a page, in multiples of 8, and smaller heads share a page. All layers with a state must have the
// same spec.
//
// `cuts`: the first layers of the second and later stages, ascending; each must be allowed
// (may_cut). Slots then belong to one stage each, a stage has as many as it needs, and a group has
// layers of several stages. The numbers of groups are those that waste the fewest slots.
CachePlan plan_cache(std::span<const CacheSpec> layers, int block_tokens,
                     std::span<const int> cuts = {});

// True if a stage may begin with this layer: neither it nor a later layer reads the pages of an
// earlier one.
bool may_cut(std::span<const CacheSpec> layers, int layer);

}  // namespace octavo
