// attention_amx.h - paged attention of bfloat16 queries on the tile unit. No MLX.
//
// Scores are computed as keys x columns, so that sixteen columns run in the lanes of the softmax;
// the weights are transposed for the second product, columns x keys times keys x values. A column's
// bits do not depend on other columns. Keys are processed 32 at a time (a step) at absolute
// positions; keys that a column does not see add nothing to it. attention_bf16.h has the same bits.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/attention_amx_weights.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// The V tiles of one step and `width` sixteens of the head starting at `dim`. Copies rotate through
// four buffers, so that no tile is loaded while its stores are still pending.
OCTAVO_INLINE TileSource v_source(const AttentionPiece& item, const AmxScratch& x, int64_t step,
                                  int64_t dim, int64_t width) {
  const TileSource t = x.v_tiles[step];
  if (t.data != nullptr) return {t.data + dim / kLanes * t.next, t.row, t.next};
  const int64_t row = width * kTileRowBytes;
  return gather_v(item, x, step, dim, dim + width * kLanes, x.v + step % 4 * kTileKeys * row, row,
                  kTileRowBytes);
}

// values = weights V, for one column tile and kWidth sixteens of the head starting at `dim`.
template <int kWidth>
static void sum_values(const AttentionPiece& item, const AttentionShape& s, AmxScratch& x,
                       int64_t dim, StepRange steps) {
  tile_zero<0>();
  if constexpr (kWidth > 1) tile_zero<1>();
  if constexpr (kWidth > 2) tile_zero<2>();
  if constexpr (kWidth > 2) tile_zero<3>();
  TileSource next = v_source(item, x, steps.from, dim, kWidth);
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource v = next;
    if (step + 1 < steps.to) next = v_source(item, x, step + 1, dim, kWidth);
    prefetch_share(x.ahead);
    tile_load<4>(x.weights + step * kTileBytes, kTileRowBytes);
    tile_stream<5>(v.data, v.row);
    tile_dot<0, 4, 5>();
    if constexpr (kWidth > 1) {
      tile_stream<6>(v.data + v.next, v.row);
      tile_dot<1, 4, 6>();
    }
    if constexpr (kWidth > 2) {
      tile_stream<7>(v.data + 2 * v.next, v.row);
      tile_dot<2, 4, 7>();
      tile_stream<5>(v.data + 3 * v.next, v.row);
      tile_dot<3, 4, 5>();
    }
  }
  float* to = x.part.values + dim;
  tile_store<0>(to, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<1>(to + kLanes, s.v_pad * 4);
  if constexpr (kWidth > 2) tile_store<2>(to + 2 * kLanes, s.v_pad * 4);
  if constexpr (kWidth > 2) tile_store<3>(to + 3 * kLanes, s.v_pad * 4);
}

// The same for two column tiles, which share the loads of V.
template <int kWidth>
static void sum_values_of_two(const AttentionPiece& item, const AttentionShape& s, AmxScratch& x,
                              int64_t dim, StepRange steps) {
  tile_zero<0>();
  tile_zero<1>();
  if constexpr (kWidth > 1) tile_zero<2>();
  if constexpr (kWidth > 1) tile_zero<3>();
  TileSource next = v_source(item, x, steps.from, dim, kWidth);
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const TileSource v = next;
    if (step + 1 < steps.to) next = v_source(item, x, step + 1, dim, kWidth);
    tile_load<4>(x.weights + step * kTileBytes, kTileRowBytes);
    tile_stream<6>(v.data, v.row);
    tile_dot<0, 4, 6>();
    tile_load<5>(x.weights + (kSteps + step) * kTileBytes, kTileRowBytes);
    tile_dot<1, 5, 6>();
    if constexpr (kWidth > 1) {
      tile_stream<7>(v.data + v.next, v.row);
      tile_dot<2, 4, 7>();
      tile_dot<3, 5, 7>();
    }
  }
  float* to = x.part.values + dim;
  float* second = to + kLanes * s.v_pad;
  tile_store<0>(to, s.v_pad * 4);
  tile_store<1>(second, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<2>(to + kLanes, s.v_pad * 4);
  if constexpr (kWidth > 1) tile_store<3>(second + kLanes, s.v_pad * 4);
}

// Computes values of a column tile again where keys that a column does not see made them infinite or
// NaN. column: the tile's first
static void leave_out_hidden(const AttentionPiece& item, const AttentionShape& s,
                             const AmxScratch& x, const ColumnTile& t, int64_t column, int block,
                             StepRange steps) {
  float* values = x.part.values + block * kLanes * s.v_pad;
  const KeyRange all = {x.base + t.all_from, x.base + t.all_to};
  if (!hides_keys(x.keys, steps, x.base, all) || all_finite(values, kLanes * s.v_pad)) return;
  const std::byte* tiles = x.weights + block * kSteps * kTileBytes;
  alignas(64) float weights[kSplitTokens];
  for (int64_t c = 0; c < kLanes && column + c < s.columns; ++c) {
    for (int64_t step = steps.from; step < steps.to; ++step)
      widen(tiles + step * kTileBytes + c * kTileRowBytes, DType::kBFloat16, 0, kStepKeys,
            weights + step * kStepKeys);
    const KeyRange seen = keys_of(item, s, x.base / kSplitTokens, column + c, column + c + 1);
    sum_seen_values(item, s, x.base, seen, weights, values + c * s.v_pad);
  }
}

// The partial of one or two column tiles starting at `column`.
template <int kBlocks>
static void attend_tiles(const AttentionPiece& item, const AttentionShape& s, AmxScratch& x,
                         int64_t column, StepRange steps) {
  ColumnTile tiles[kBlocks];
  for (int block = 0; block < kBlocks; ++block)
    tiles[block] = column_tile(item, s, x.base, column + block * kLanes);
  score_steps<kBlocks>(*item.job, x, x.q + column * x.k_pad * 2, steps, tiles);
  for (int block = 0; block < kBlocks; ++block) weigh(*item.job, x, tiles[block], block, steps);
  constexpr int64_t kWidth = kBlocks == 2 ? 2 : 4;
  int64_t dim = 0;
  for (; dim + kWidth * kLanes <= s.v_pad; dim += kWidth * kLanes) {
    if constexpr (kBlocks == 2) {
      sum_values_of_two<2>(item, s, x, dim, steps);
    } else {
      sum_values<4>(item, s, x, dim, steps);
    }
  }
  for (; dim < s.v_pad; dim += kLanes) {
    if constexpr (kBlocks == 2) {
      sum_values_of_two<1>(item, s, x, dim, steps);
    } else {
      sum_values<1>(item, s, x, dim, steps);
    }
  }
  for (int block = 0; block < kBlocks; ++block)
    leave_out_hidden(item, s, x, tiles[block], column + block * kLanes, block, steps);
}

// How often attend_tiles<1> prefetches a share during a split: for each step once with its scores, its
// weights, and each four sixteens of the head or one at its end.
OCTAVO_INLINE int64_t prefetch_calls(const AttentionShape& s, const AmxScratch& x) {
  const StepRange range = steps_of(x.keys, x.base);
  const int64_t steps = range.to - range.from;
  const int64_t sixteens = s.v_pad / kLanes;
  return steps > 0 ? steps * (2 + sixteens / 4 + sixteens % 4) : 1;
}

static void amx_attend(const AttentionPiece& item, std::byte* scratch) {
  const AttentionShape s = attention_shape(item);
  AmxScratch x;
  place_amx_scratch(item, s, scratch, x);
  pack_queries(item, s, x);
  const bool fold = item.partials == nullptr;
  if (fold) clear_result(x.total, s, 0, s.columns);
  for (int64_t split = item.split_begin; split < item.split_end; ++split) {
    x.base = split * kSplitTokens;
    x.keys = keys_of(item, s, split, 0, s.columns);
    x.ahead = prefetch_after(item, split, prefetch_calls(s, x));
    find_tiles(item, s, x);
    for (int64_t c = 0; c < s.columns; c += 2 * kLanes) {
      const int64_t end = c + 2 * kLanes < s.columns ? c + 2 * kLanes : s.columns;
      const KeyRange keys = keys_of(item, s, split, c, end);
      if (!fold) {
        float* partial = item.partials + (split - item.split_begin) * result_floats(s);
        x.part = result_from(result_at(partial, s), s, c);
      }
      if (keys.from >= keys.to) {
        if (!fold) clear_result(x.part, s, 0, end - c);
        continue;
      }
      const StepRange steps = steps_of(keys, x.base);
      if (end - c > kLanes) {
        attend_tiles<2>(item, s, x, c, steps);
      } else {
        attend_tiles<1>(item, s, x, c, steps);
      }
      if (fold) fold_result(result_from(x.total, s, c), x.part, s, 0, end - c);
    }
  }
  if (fold) write_out(item, x.total, s);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
