#include "kernels/metal/attention_grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace octavo::metal {
namespace {

// A core runs several threadgroups at once; fewer leave it idle.
constexpr int64_t kGroupsPerCore = 6;
// A sequence's only item with more splits than this would delay the whole batch.
constexpr int32_t kMostSplits = 32;
constexpr std::array<int32_t, 3> kTiles = {1, 2, 4};
constexpr std::array<int32_t, 3> kDecodeWidths = {4, 8, 16};
// Accumulators of a lane of paged_attention with more than two tiles: 128 registers must hold twice as
// many, scores and addresses.
constexpr int32_t kMostMatrixFloats = 16;
// Accumulators of a lane of decode_attention.
constexpr int32_t kMostDecodeValues = 32;

int32_t divide_up(int32_t value, int32_t by) { return (value + by - 1) / by; }

// The narrowest item that holds all columns, or the widest allowed.
int32_t matrix_width(int32_t columns, int32_t most_tiles) {
  for (int32_t tiles : kTiles)
    if (tiles <= most_tiles && columns <= tiles * kTileColumns) return tiles * kTileColumns;
  return most_tiles * kTileColumns;
}
int32_t decode_width(int32_t columns) {
  return *std::ranges::find_if(kDecodeWidths, [&](int32_t width) { return columns <= width; });
}

// The wave for a sequence with so many columns.
AttentionWave& wave_for(const AttentionBatch& batch, int32_t columns, AttentionGrid& grid) {
  const bool is_decode = columns <= batch.most_vector;
  const AttentionKernel kernel = is_decode ? AttentionKernel::kDecode : AttentionKernel::kMatrix;
  const int32_t width = is_decode ? decode_width(columns) : matrix_width(columns, batch.most_tiles);
  const auto found = std::ranges::find_if(grid.waves, [&](const AttentionWave& wave) {
    return wave.kernel == kernel && wave.width == width;
  });
  if (found != grid.waves.end()) return *found;
  return grid.waves.emplace_back(AttentionWave{kernel, width, {}});
}

struct SequenceRows {
  int32_t sequence;
  int32_t first_row;
  int32_t rows;
  int32_t position;  // of the first row
};

std::vector<SequenceRows> rows_of(const AttentionBatch& batch) {
  std::vector<SequenceRows> all;
  for (size_t s = 0; s < batch.context_lens.size(); ++s) {
    const int32_t begin = batch.cu_seqlens_q[s];
    const int32_t rows = batch.cu_seqlens_q[s + 1] - begin;
    if (rows == 0) continue;
    OCTAVO_CHECK(rows > 0 && rows <= batch.context_lens[s]);
    all.push_back({static_cast<int32_t>(s), begin, rows, batch.context_lens[s] - rows});
  }
  return all;
}

// The last position that rows [begin, end) of a sequence see.
int32_t last_seen(const AttentionBatch& batch, const SequenceRows& rows, int32_t begin,
                  int32_t end) {
  int32_t last = rows.position + end - 1;
  if (batch.last_visible.empty()) return last;
  const int32_t context = batch.context_lens[static_cast<size_t>(rows.sequence)];
  for (int32_t row = begin; row < end; ++row) {
    const int32_t seen = batch.last_visible[static_cast<size_t>(rows.first_row + row)];
    OCTAVO_CHECK(seen >= rows.position + row && seen < context);
    last = std::max(last, seen);
  }
  return last;
}

// Adds the columns of one sequence as unsplit items.
void add_items(const AttentionBatch& batch, const SequenceRows& rows, AttentionWave& wave) {
  const int32_t columns = rows.rows * batch.group;
  for (int32_t begin = 0; begin < columns; begin += wave.width) {
    const int32_t count = std::min(wave.width, columns - begin);
    const int32_t first_row = begin / batch.group;
    const int32_t first = rows.position + first_row;
    const int32_t last = last_seen(batch, rows, first_row, (begin + count - 1) / batch.group + 1);
    const int32_t seen = batch.window > 0 ? std::max(0, first - batch.window + 1) : 0;
    wave.items.push_back({.sequence = rows.sequence,
                          .first_row = rows.first_row,
                          .position = rows.position,
                          .column_begin = begin,
                          .columns = count,
                          .split_begin = seen / kSplitKeys,
                          .split_end = last / kSplitKeys + 1,
                          .partial = -1});
  }
}

// Divides an item into one per split; the partials are merged afterwards.
void cut(const GridItem& item, int32_t tiles, AttentionGrid& grid, std::vector<GridItem>& pieces) {
  const int32_t splits = item.split_end - item.split_begin;
  grid.merges.push_back({.first_row = item.first_row,
                         .column_begin = item.column_begin,
                         .columns = item.columns,
                         .tiles = tiles,
                         .partial = grid.partial_tiles,
                         .partials = splits});
  for (int32_t split = item.split_begin; split < item.split_end; ++split) {
    GridItem piece = item;
    piece.split_begin = split;
    piece.split_end = split + 1;
    piece.partial = grid.partial_tiles;
    grid.partial_tiles += tiles;
    pieces.push_back(piece);
  }
}

// Whether more threadgroups would help.
bool is_worth_cutting(const AttentionBatch& batch, const GridItem& item, int64_t groups) {
  const int32_t splits = item.split_end - item.split_begin;
  if (groups < kGroupsPerCore * batch.gpu_cores) return splits > 1;
  const auto s = static_cast<size_t>(item.sequence);
  const int32_t columns = (batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s]) * batch.group;
  return splits > kMostSplits && item.columns == columns;
}

int64_t floats_of(int64_t tiles, int32_t v_dim) { return tiles * kTileColumns * (v_dim + 2); }

bool has_room(const AttentionBatch& batch, const AttentionGrid& grid, const GridItem& item,
              int32_t tiles) {
  const int64_t more = int64_t{item.split_end - item.split_begin} * tiles;
  const int64_t floats = floats_of(grid.partial_tiles + more, batch.v_dim) * batch.kv_heads;
  return floats * static_cast<int64_t>(sizeof(float)) <= kMostPartialBytes;
}

}  // namespace

int64_t partial_floats(const AttentionGrid& grid, int32_t v_dim) {
  return floats_of(grid.partial_tiles, v_dim);
}

int32_t widest_item(int32_t k_dim, int32_t v_dim, int32_t element_bytes) {
  int32_t widest = 0;
  for (int32_t tiles : kTiles) {
    const int32_t columns = tiles * kTileColumns;
    const int32_t stride = query_stride(k_dim, columns, element_bytes);
    const bool fits = matrix_bytes(k_dim, columns, element_bytes, stride) <= kThreadgroupBytes;
    if (fits && (tiles <= 2 || matrix_floats(v_dim, tiles) <= kMostMatrixFloats)) widest = tiles;
  }
  if (widest == 0)
    throw SetupError(
        fmt::format("head size {} is too large for the Metal kernels; use --device cpu", k_dim));
  return widest;
}

int32_t widest_decode(int32_t k_dim, int32_t v_dim) {
  constexpr int32_t kThreads = kAttentionSimdgroups * 32;
  const int32_t values = decode_values(v_dim);
  if (values * kThreads < v_dim) return 0;
  int32_t widest = 0;
  for (int32_t columns : kDecodeWidths)
    if (columns * values <= kMostDecodeValues && decode_bytes(k_dim, columns) <= kThreadgroupBytes)
      widest = columns;
  return widest;
}

AttentionGrid plan_attention_grid(const AttentionBatch& batch) {
  AttentionGrid grid;
  int64_t groups = 0;
  for (const SequenceRows& rows : rows_of(batch)) {
    const int32_t columns = rows.rows * batch.group;
    AttentionWave& wave = wave_for(batch, columns, grid);
    add_items(batch, rows, wave);
    groups += int64_t{divide_up(columns, wave.width)} * batch.kv_heads;
  }
  for (AttentionWave& wave : grid.waves) {
    const int32_t tiles = divide_up(wave.width, kTileColumns);
    std::vector<GridItem> pieces;
    for (const GridItem& item : wave.items) {
      if (is_worth_cutting(batch, item, groups) && has_room(batch, grid, item, tiles)) {
        cut(item, tiles, grid, pieces);
      } else {
        pieces.push_back(item);
      }
    }
    wave.items = std::move(pieces);
  }
  return grid;
}

}  // namespace octavo::metal
