// attention_params.h - shared by paged_attention.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/page_params.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kAttentionSimdgroups = 4;
METAL_CONSTANT int kTileColumns = 8;
// Keys per partial result, at absolute positions. Partials are folded in index order.
METAL_CONSTANT int kSplitKeys = 128;

// The columns of a sequence are its (row, query head) pairs for one KV head; the heads of a row are
// adjacent. An item processes a range of columns, at most kTileColumns per tile, over a range of
// splits.
struct GridItem {
  int32_t sequence;
  int32_t first_row;  // of the sequence, in the batch
  int32_t position;   // of that row
  int32_t column_begin;
  int32_t columns;
  int32_t split_begin;
  int32_t split_end;
  // -1: write the rows to the output. Otherwise the item has one split, and this is the index of
  // its first partial tile: kTileColumns columns of values, highest scores and sums.
  int32_t partial;
};

// Merges the partials of one item's columns.
struct MergeItem {
  int32_t first_row;
  int32_t column_begin;
  int32_t columns;
  int32_t tiles;  // width of a partial
  int32_t partial;
  int32_t partials;  // consecutive
};

struct AttentionParams {
  PageParams pages;
  int32_t q_heads;
  int32_t kv_heads;
  int32_t window;
  float scale;
  float soft_cap;
  int32_t partial_stride;  // floats from one KV head's partials to the next
};

}  // namespace metal
}  // namespace octavo
