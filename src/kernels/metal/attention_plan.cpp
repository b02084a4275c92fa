#include "kernels/metal/attention_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace octavo::metal {
namespace {

// Fewer threadgroups than this leave a large GPU idle: 40 cores with room for several each.
constexpr int64_t kWantedGroups = 256;
// A sequence's only item through more splits than this would be waited for by the rest of its
// batch.
constexpr int32_t kMostSplits = 32;
constexpr int32_t kThreadgroupBytes = 32 << 10;
constexpr std::array<int32_t, 3> kWidths = {1, 2, 4};

int32_t divide_up(int32_t value, int32_t by) { return (value + by - 1) / by; }

// The narrowest item that takes all columns at once, or the widest there may be.
int32_t tiles_for(int32_t columns, int32_t most) {
  for (int32_t tiles : kWidths)
    if (tiles <= most && columns <= tiles * kTileColumns) return tiles;
  return most;
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

// The columns of one sequence as whole items.
void add_items(const AttentionBatch& batch, const SequenceRows& rows, AttentionWave& wave) {
  const int32_t columns = rows.rows * batch.group;
  const int32_t width = wave.tiles * kTileColumns;
  for (int32_t begin = 0; begin < columns; begin += width) {
    const int32_t count = std::min(width, columns - begin);
    const int32_t first = rows.position + begin / batch.group;
    const int32_t last = rows.position + (begin + count - 1) / batch.group;
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

// One item per split, their partials to be folded afterwards.
void cut(const AttentionItem& item, int32_t tiles, AttentionPlan& plan,
         std::vector<AttentionItem>& pieces) {
  const int32_t splits = item.split_end - item.split_begin;
  plan.merges.push_back({.first_row = item.first_row,
                         .column_begin = item.column_begin,
                         .columns = item.columns,
                         .tiles = tiles,
                         .partial = plan.partial_tiles,
                         .partials = splits});
  for (int32_t split = item.split_begin; split < item.split_end; ++split) {
    AttentionItem piece = item;
    piece.split_begin = split;
    piece.split_end = split + 1;
    piece.partial = plan.partial_tiles;
    plan.partial_tiles += tiles;
    pieces.push_back(piece);
  }
}

// Whether more threadgroups than the batch has would help.
bool is_worth_cutting(const AttentionBatch& batch, const AttentionItem& item, int64_t groups) {
  const int32_t splits = item.split_end - item.split_begin;
  if (groups < kWantedGroups) return splits > 1;
  const auto s = static_cast<size_t>(item.sequence);
  const int32_t columns = (batch.cu_seqlens_q[s + 1] - batch.cu_seqlens_q[s]) * batch.group;
  return splits > kMostSplits && item.columns == columns;
}

int64_t floats_of(int64_t tiles, int32_t v_dim) { return tiles * kTileColumns * (v_dim + 2); }

bool has_room(const AttentionBatch& batch, const AttentionPlan& plan, const AttentionItem& item,
              int32_t tiles) {
  const int64_t more = int64_t{item.split_end - item.split_begin} * tiles;
  const int64_t floats = floats_of(plan.partial_tiles + more, batch.v_dim) * batch.kv_heads;
  return floats * static_cast<int64_t>(sizeof(float)) <= kMostPartialBytes;
}

}  // namespace

int64_t partial_floats(const AttentionPlan& plan, int32_t v_dim) {
  return floats_of(plan.partial_tiles, v_dim);
}

int32_t widest_item(int32_t k_dim, int32_t element_bytes) {
  constexpr int32_t kFixed = kAttentionSimdgroups * 64 * 2 * static_cast<int32_t>(sizeof(float));
  constexpr int32_t kPerColumn = (kSplitKeys + 4) * static_cast<int32_t>(sizeof(float));
  int32_t widest = 0;
  for (int32_t tiles : kWidths) {
    const int32_t column = kPerColumn + k_dim * element_bytes;
    if (kFixed + tiles * kTileColumns * column <= kThreadgroupBytes) widest = tiles;
  }
  if (widest == 0)
    throw SetupError(
        fmt::format("heads of {} numbers are too large for Metal's kernels: --device cpu", k_dim));
  return widest;
}

AttentionPlan plan_attention(const AttentionBatch& batch) {
  AttentionPlan plan;
  for (int32_t tiles : kWidths) plan.waves.push_back({tiles, {}});
  int64_t groups = 0;
  for (const SequenceRows& rows : rows_of(batch)) {
    const int32_t tiles = tiles_for(rows.rows * batch.group, batch.most_tiles);
    const auto wave = std::ranges::find(plan.waves, tiles, &AttentionWave::tiles);
    add_items(batch, rows, *wave);
    groups += divide_up(rows.rows * batch.group, tiles * kTileColumns) * batch.kv_heads;
  }
  for (AttentionWave& wave : plan.waves) {
    std::vector<AttentionItem> pieces;
    for (const AttentionItem& item : wave.items) {
      if (is_worth_cutting(batch, item, groups) && has_room(batch, plan, item, wave.tiles)) {
        cut(item, wave.tiles, plan, pieces);
      } else {
        pieces.push_back(item);
      }
    }
    wave.items = std::move(pieces);
  }
  std::erase_if(plan.waves, [](const AttentionWave& wave) { return wave.items.empty(); });
  return plan;
}

}  // namespace octavo::metal
