// attention_params.h - shared by paged_attention.metal and its host code. No MLX.
#pragma once

#include "kernels/metal/page_params.h"

namespace octavo {
namespace metal {

METAL_CONSTANT int kAttentionSimdgroups = 4;
METAL_CONSTANT int kTileColumns = 8;
// Keys per partial result, at absolute positions. Partials are folded in index order.
METAL_CONSTANT int kSplitKeys = 128;
// A score is the sum of four chains. Chain j adds dims 8j to 8j + 7 of every 32, in order.
METAL_CONSTANT int kScoreChains = 4;
METAL_CONSTANT int kThreadgroupBytes = 32 << 10;
// Rows of threadgroup memory are padded so that eight of them lie in different banks.
METAL_CONSTANT int kPadBytes = 16;
METAL_CONSTANT int kScoreStride = kSplitKeys + kPadBytes / 4;  // floats from one column to the next

// paged_attention: eight simdgroups unless the values are few, so that accumulators and scores stay in
// registers.
METAL_CONSTANT int kMostSimdgroups = 8;
constexpr int matrix_simdgroups(int v_dim) { return v_dim >= 64 ? kMostSimdgroups : 4; }

// paged_attention: accumulators of a lane, of which a split needs as many again.
constexpr int matrix_floats(int v_dim, int tiles) {
  return 2 * tiles * ((v_dim / 8 + matrix_simdgroups(v_dim) - 1) / matrix_simdgroups(v_dim));
}

// paged_attention: the most threadgroup memory of queries with a stride of `stride`, of weights, and of
// the maxima and sums of columns.
constexpr int matrix_bytes(int k_dim, int columns, int element_bytes, int stride) {
  return k_dim * stride * element_bytes +
         columns * (kSplitKeys * element_bytes + kPadBytes + 3 * kMostSimdgroups * 4);
}

// paged_attention: queries are stored by dim; elements from one dim to the next. Padded if it fits.
constexpr int query_stride(int k_dim, int columns, int element_bytes) {
  return columns > kTileColumns &&
                 matrix_bytes(k_dim, columns, element_bytes, columns + kPadBytes / element_bytes) <=
                     kThreadgroupBytes
             ? columns + kPadBytes / element_bytes
             : columns;
}

// paged_attention: adjacent value tiles that a lane loads at once, so that each simdgroup has as many.
constexpr int value_tiles_at_once(int v_dim) {
  return v_dim % (32 * matrix_simdgroups(v_dim)) == 0   ? 4
         : v_dim % (16 * matrix_simdgroups(v_dim)) == 0 ? 2
                                                        : 1;
}

// decode_attention: values per thread.
constexpr int decode_values(int v_dim) { return v_dim <= 128 ? 1 : v_dim <= 256 ? 2 : 4; }

// decode_attention: the threadgroup memory of an item.
constexpr int decode_bytes(int k_dim, int columns) {
  return columns * (k_dim + kScoreStride + 4) * 4;
}

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
