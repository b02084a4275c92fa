// attention_amx_tiles.h - queries, keys and values in the tile unit's layout: used in place if the
// pages have that layout, gathered otherwise. No MLX.
#pragma once

#ifdef OCTAVO_SIMD_AMX

#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/attention_values.h"
#include "kernels/cpu/simd/page_prefetch.h"
#include "kernels/cpu/simd/transpose.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int64_t kTileKeys = 16;
inline constexpr int64_t kKeyTiles = kSplitTokens / kTileKeys;
inline constexpr int64_t kTileBytes = 1024;
inline constexpr int64_t kTileRowBytes = 64;

// The location of tiles: in the pages, or contiguous in scratch memory. Bytes from row to row, and
// from one tile of a key's numbers to the next.
struct TileSource {
  const std::byte* data;
  int64_t row;
  int64_t next;
};

struct AmxScratch {
  AttentionResult total;
  AttentionResult part;  // of two column tiles
  std::byte* q;          // [column tile][k_pad / 32] tiles [16 pairs of dims][16 columns][2]
  std::byte* k;          // [kKeyTiles][k_pad / 32] tiles [16 keys][32 dims]
  std::byte* v;          // [v_pad / 16][kSteps] tiles [16 pairs of keys][16 dims][2]
  float* k_scales;       // [kSplitTokens], int8 only
  float* v_scales;       // [kSplitTokens]
  float* scores;         // [2 column tiles][kSplitTokens][16]
  std::byte* weights;    // [2 column tiles][kSteps] tiles [16 columns][32 keys]
  int64_t k_pad;         // k_dim to 32
  TileSource k_tiles[kKeyTiles];
  TileSource v_tiles[kSteps];  // without data: gathered on demand
  KeyRange keys;               // of the current split
  int64_t base;                // its first position
  PagePrefetch ahead;
};

OCTAVO_INLINE int64_t amx_q_bytes(const AttentionShape& s, int64_t k_pad) {
  return s.padded_columns * k_pad * 2;
}

// For two column tiles whose partials are folded immediately.
OCTAVO_INLINE int64_t pair_floats(const AttentionShape& s) { return 2 * kLanes * (2 + s.v_pad); }

static int64_t amx_attention_scratch(const AttentionPiece& item) {
  const AttentionShape s = attention_shape(item);
  const int64_t k_pad = round_up(item.job->layout.k_dim, 32);
  return (result_floats(s) + pair_floats(s)) * 4 + amx_q_bytes(s, k_pad) +
         kSplitTokens * (k_pad + s.v_pad) * 2 + kSplitTokens * 2 * 4 +
         2 * kSplitTokens * kLanes * 4 + 2 * kSteps * kTileBytes;
}

OCTAVO_INLINE void place_amx_scratch(const AttentionPiece& item, const AttentionShape& s,
                                     std::byte* memory, AmxScratch& x) {
  x.k_pad = round_up(item.job->layout.k_dim, 32);
  auto* floats = reinterpret_cast<float*>(memory);
  x.total = result_at(floats, s);
  floats += result_floats(s);
  x.part = {floats, floats + 2 * kLanes, floats + 4 * kLanes};
  x.q = memory + (result_floats(s) + pair_floats(s)) * 4;
  x.k = x.q + amx_q_bytes(s, x.k_pad);
  x.v = x.k + kSplitTokens * x.k_pad * 2;
  x.k_scales = reinterpret_cast<float*>(x.v + kSplitTokens * s.v_pad * 2);
  x.v_scales = x.k_scales + kSplitTokens;
  x.scores = x.v_scales + kSplitTokens;
  x.weights = reinterpret_cast<std::byte*>(x.scores + 2 * kSplitTokens * kLanes);
}

OCTAVO_INLINE __mmask32 first_of_32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}

static void pack_queries(const AttentionPiece& item, const AttentionShape& s, const AmxScratch& x) {
  const AttentionJob& job = *item.job;
  const int64_t dim = job.layout.k_dim;
  const auto* q = static_cast<const uint16_t*>(job.q);
  std::byte* tile = x.q;
  for (int64_t first = 0; first < s.columns; first += kLanes) {
    for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes) {
      __m512 rows[16];
      for (int c = 0; c < 16; ++c) {
        const int64_t column = first + c;
        rows[c] = _mm512_setzero_ps();
        if (column >= s.columns) continue;
        const int64_t row = item.row_begin + column / s.group;
        const int64_t head = item.head_begin + column % s.group;
        rows[c] = _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(
            first_of_32(dim - d), q + (row * job.q_heads + head) * dim + d));
      }
      transpose16(rows);
      for (int i = 0; i < 16; ++i) _mm512_store_ps(tile + i * kTileRowBytes, rows[i]);
    }
  }
}

// 32 numbers of a row starting at `d` as bfloat16, zeros past its end. int8 converts exactly.
OCTAVO_INLINE __m512i load_numbers(const std::byte* row, bool int8, int64_t d, int64_t dim) {
  const __mmask32 mask = first_of_32(dim - d);
  if (!int8) return _mm512_maskz_loadu_epi16(mask, row + 2 * d);
  const __m256i bytes = _mm256_maskz_loadu_epi8(mask, row + d);
  const __m512 low = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_castsi256_si128(bytes)));
  const __m512 high = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm256_extracti128_si256(bytes, 1)));
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Eight aligned positions always share a page. Positions outside `keys` may have no page.
inline constexpr int64_t kRun = 8;
OCTAVO_INLINE PageSlot run_slot(const AttentionPiece& item, KeyRange keys, int64_t first) {
  if (first + kRun <= keys.from || first >= keys.to) return {nullptr, 0};
  return slot_of(item, first);
}

// Keys [first, first + 8) as rows of tiles; those outside `keys` become zero and are not read.
static void gather_k(const AttentionPiece& item, const AmxScratch& x, KeyRange keys, int64_t first,
                     std::byte* to) {
  const PageLayout& l = item.job->layout;
  const PageSlot at = run_slot(item, keys, first);
  for (int64_t i = 0; i < kRun; ++i, to += kTileRowBytes) {
    std::byte* tile = to;
    if (first + i < keys.from || first + i >= keys.to) {
      for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes)
        _mm512_store_si512(tile, _mm512_setzero_si512());
      continue;
    }
    const std::byte* row = at.head + (at.slot + i) * l.k_row_bytes;
    if (!l.int8 && l.k_dim == x.k_pad) {
      for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes)
        _mm512_store_si512(tile, _mm512_loadu_si512(row + 2 * d));
      continue;
    }
    for (int64_t d = 0; d < x.k_pad; d += 32, tile += kTileBytes)
      _mm512_store_si512(tile, load_numbers(row, l.int8, d, l.k_dim));
  }
}

// Sixteen numbers of one token's V as the low halves of 32 bits.
OCTAVO_INLINE __m512i load_v(const PageLayout& l, PageSlot at, int64_t d) {
  const std::byte* v = at.head + l.v_first;
  if (!l.paired_values) {
    const __m512i row = load_numbers(v + at.slot * l.v_row_bytes, l.int8, d, l.v_dim);
    return _mm512_cvtepu16_epi32(_mm512_castsi512_si256(row));
  }
  // Every second number of the pair's row is this token's.
  const auto mask = static_cast<__mmask16>(first_of_32(l.v_dim - d));
  const __m512i both =
      _mm512_maskz_loadu_epi32(mask, v + at.slot / 2 * (2 * l.v_row_bytes) + d * 4);
  if (at.slot % 2 != 0) return _mm512_srli_epi32(both, 16);
  return _mm512_and_si512(both, _mm512_set1_epi32(0xffff));
}

// Sixteen numbers of two bfloat16 rows, interleaved.
OCTAVO_INLINE __m512i paired(const std::byte* even, const std::byte* odd) {
  const auto numbers = [](const std::byte* row) OCTAVO_INLINE_LAMBDA {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row)));
  };
  return _mm512_or_si512(numbers(even), _mm512_slli_epi32(numbers(odd), 16));
}

// Numbers [d_begin, d_end) of V of positions [first, first + 8) as rows of pairs.
static void gather_v_run(const AttentionPiece& item, KeyRange keys, int64_t first, int64_t d_begin,
                         int64_t d_end, std::byte* to, int64_t row, int64_t next) {
  const PageLayout& l = item.job->layout;
  const PageSlot at = run_slot(item, keys, first);
  const bool whole = first >= keys.from && first + kRun <= keys.to;
  for (int64_t i = 0; i < kRun; i += 2, to += row) {
    std::byte* tile = to;
    const std::byte* pair = at.head + l.v_first + (at.slot + i) * l.v_row_bytes;
    if (whole && l.paired_values && d_end <= l.v_dim) {
      for (int64_t d = d_begin; d < d_end; d += kLanes, tile += next)
        _mm512_store_si512(tile, _mm512_loadu_si512(pair + d * 4));
      continue;
    }
    if (whole && l.values_in_keys && d_end <= l.v_dim) {
      const std::byte* odd = pair + l.v_row_bytes;
      for (int64_t d = d_begin; d < d_end; d += kLanes, tile += next)
        _mm512_store_si512(tile, paired(pair + d * 2, odd + d * 2));
      continue;
    }
    auto seen = [&](int64_t p) { return p >= keys.from && p < keys.to; };
    for (int64_t d = d_begin; d < d_end; d += kLanes, tile += next) {
      __m512i even = _mm512_setzero_si512();
      __m512i odd = even;
      if (seen(first + i)) even = load_v(l, {at.head, at.slot + i}, d);
      if (seen(first + i + 1)) odd = load_v(l, {at.head, at.slot + i + 1}, d);
      _mm512_store_si512(tile, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
    }
  }
}

// The same for a whole step.
OCTAVO_INLINE TileSource gather_v(const AttentionPiece& item, const AmxScratch& x, int64_t step,
                                  int64_t d_begin, int64_t d_end, std::byte* to, int64_t row,
                                  int64_t next) {
  const int64_t first = x.base + step * kStepKeys;
  for (int64_t j = 0; j < kStepKeys; j += kRun)
    gather_v_run(item, x.keys, first + j, d_begin, d_end, to + j / 2 * row, row, next);
  return {to, row, next};
}

// Whether [first, first + count) lies in `keys` and in one page.
OCTAVO_INLINE bool in_one_page(const PageLayout& l, KeyRange keys, int64_t first, int64_t count) {
  return first >= keys.from && first + count <= keys.to &&
         static_cast<uint32_t>(first) % static_cast<uint32_t>(l.block_tokens) + count <=
             l.block_tokens;
}

static void gather_scales(const AttentionPiece& item, const AmxScratch& x, KeyRange keys,
                          int64_t base) {
  const PageLayout& l = item.job->layout;
  for (int64_t p = keys.from; p < keys.to; ++p) {
    const PageSlot at = slot_of(item, p);
    std::memcpy(x.k_scales + (p - base), at.head + l.k_scales + at.slot * 4, 4);
    std::memcpy(x.v_scales + (p - base), at.head + l.v_scales + at.slot * 4, 4);
  }
}

// Finds or gathers the tiles of a split's K and V, for the steps that `keys` touch. With
// many columns a copy pays off, because the later ones read it sequentially.
static void find_tiles(const AttentionPiece& item, const AttentionShape& s, AmxScratch& x) {
  const PageLayout& l = item.job->layout;
  const KeyRange keys = x.keys;
  const int64_t base = x.base;
  const bool few = s.columns <= 2 * kLanes;
  const bool k_ready = few && !l.int8 && l.k_dim == x.k_pad;
  const bool v_ready = few && l.paired_values && l.v_dim == s.v_pad;
  const StepRange steps = steps_of(keys, base);
  for (int64_t step = steps.from; step < steps.to; ++step) {
    const int64_t first = base + step * kStepKeys;
    for (int64_t tile = 2 * step; tile < 2 * step + 2; ++tile) {
      const int64_t key = base + tile * kTileKeys;
      if (k_ready && in_one_page(l, keys, key, kTileKeys)) {
        const PageSlot at = slot_of(item, key);
        x.k_tiles[tile] = {at.head + at.slot * l.k_row_bytes, l.k_row_bytes, kTileRowBytes};
      } else {
        std::byte* to = x.k + tile * kTileKeys * x.k_pad * 2;
        gather_k(item, x, keys, key, to);
        gather_k(item, x, keys, key + kRun, to + kRun * kTileRowBytes);
        x.k_tiles[tile] = {to, kTileRowBytes, kTileBytes};
      }
    }
    if (v_ready && in_one_page(l, keys, first, kStepKeys)) {
      const PageSlot at = slot_of(item, first);
      x.v_tiles[step] = {at.head + l.v_first + at.slot * l.v_row_bytes, 2 * l.v_row_bytes,
                         kTileRowBytes};
    } else {
      // A copy that is read once is made just before it is read.
      x.v_tiles[step] = few ? TileSource{nullptr, 0, 0}
                            : gather_v(item, x, step, 0, s.v_pad, x.v + step * kTileBytes,
                                       kTileRowBytes, kSteps * kTileBytes);
    }
  }
  if (l.int8) gather_scales(item, x, keys, base);
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE

#endif
