#include "kernels/cpu/paged_attention.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/scratch.h"

namespace octavo::cpu {
namespace {

// Columns (row, query head) that share one read of a split's K and V.
constexpr int64_t kItemColumns = 512;
// Query heads per piece if whole groups give too few pieces for the threads.
constexpr int64_t kHeadBlock = 32;

AttentionJob job_of(const PagedAttentionArgs& args) {
  OCTAVO_CHECK(args.options.scale > 0);
  AttentionJob job;
  job.q = args.q;
  job.out = args.out;
  job.dtype = args.dtype;
  job.q_heads = args.q_heads;
  job.options = args.options;
  job.layout = page_layout(args.batch.geometry);
  job.pages = args.batch.pages;
  job.page_stride = args.batch.page_stride;
  job.last_visible = args.last_visible;
  return job;
}

// The last position that some row of the piece sees. Aborts if a row does not see itself or sees
// positions from `context` on.
int64_t last_seen(const AttentionJob& job, const AttentionPiece& item, int64_t context) {
  const int64_t own = item.position + (item.row_end - item.row_begin) - 1;
  if (job.last_visible == nullptr) return own;
  int64_t last = own;
  for (int64_t row = item.row_begin; row < item.row_end; ++row) {
    const int64_t seen = job.last_visible[row];
    OCTAVO_CHECK(seen >= item.position + row - item.row_begin && seen < context);
    last = std::max(last, seen);
  }
  return last;
}

// Aborts unless every page of positions [from, to) exists.
void check_pages(const PagedBatch& batch, int64_t sequence, int64_t from, int64_t to) {
  const int64_t block = batch.geometry.block_tokens;
  OCTAVO_CHECK(from >= 0 && (to - 1) / block < batch.table_columns);
  for (int64_t column = from / block; column <= (to - 1) / block; ++column) {
    const int64_t page = batch.block_tables[sequence * batch.table_columns + column];
    OCTAVO_CHECK(page >= 0 && page < batch.page_count);
  }
}

// Adds the piece once per KV head and per block of up to `heads` query heads that share it.
void add_heads(const AttentionJob& job, AttentionPiece item, int64_t heads,
               std::vector<AttentionPiece>& items) {
  const int64_t group = job.q_heads / job.layout.kv_heads;
  for (item.kv_head = 0; item.kv_head < job.layout.kv_heads; ++item.kv_head) {
    for (int64_t first = 0; first < group; first += heads) {
      item.head_begin = item.kv_head * group + first;
      item.heads = std::min(heads, group - first);
      items.push_back(item);
    }
  }
}

// The rows of one sequence in blocks, those with the longest context first.
void list_sequence(const AttentionJob& job, const PagedBatch& batch, int64_t sequence,
                   int64_t heads, std::vector<AttentionPiece>& items) {
  const int64_t begin = batch.cu_seqlens_q[sequence];
  const int64_t end = batch.cu_seqlens_q[sequence + 1];
  if (begin == end) return;
  const int64_t context = batch.context_lens[sequence];
  const int64_t start = context - (end - begin);  // position of row `begin`
  auto first_visible = [&](int64_t position) {
    return job.options.window > 0 ? std::max<int64_t>(0, position - job.options.window + 1) : 0;
  };
  check_pages(batch, sequence, first_visible(start), context);
  const int64_t rows = std::max<int64_t>(1, kItemColumns / heads);
  const int64_t blocks = (end - begin + rows - 1) / rows;
  for (int64_t block = blocks - 1; block >= 0; --block) {
    AttentionPiece item;
    item.job = &job;
    item.table = batch.block_tables + sequence * batch.table_columns;
    item.row_begin = begin + block * rows;
    item.row_end = std::min(item.row_begin + rows, end);
    item.position = start + block * rows;
    item.split_begin = first_visible(item.position) / kSplitTokens;
    item.split_end = last_seen(job, item, context) / kSplitTokens + 1;
    add_heads(job, item, heads, items);
  }
}

// With up to `heads` query heads per piece.
std::vector<AttentionPiece> list_items(const AttentionJob& job, const PagedBatch& batch,
                                       int64_t heads) {
  std::vector<AttentionPiece> items;
  for (int64_t s = 0; s < batch.sequences; ++s) list_sequence(job, batch, s, heads, items);
  return items;
}

void attend_all(std::vector<AttentionPiece>& items, bool merge) {
  const auto count = static_cast<int64_t>(items.size());
  const KernelTable& table = kernels();
  // Several pieces per task, so that most know their successor; enough tasks to balance the
  // threads.
  constexpr int64_t kPiecesPerThread = 8;
  const int64_t grain = std::max<int64_t>(1, count / (kPiecesPerThread * compute_pool().threads()));
  compute_pool().parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    prepare_thread();
    for (int64_t i = begin; i < end; ++i) {
      AttentionPiece& item = items[static_cast<size_t>(i)];
      item.next = i + 1 < end ? &items[static_cast<size_t>(i + 1)] : nullptr;
      std::byte* memory = scratch(Scratch::kAttention, table.attention_scratch(item));
      merge ? table.merge_partials(item, memory) : table.attend(item, memory);
    }
  });
}

// Divides pieces along their splits until there are `wanted`; the partials are folded afterwards.
void attend_in_pieces(std::vector<AttentionPiece> items, int64_t wanted) {
  const KernelTable& table = kernels();
  const int64_t pieces =
      (wanted + static_cast<int64_t>(items.size()) - 1) / static_cast<int64_t>(items.size());
  int64_t floats = 0;
  for (const auto& item : items)
    floats += table.partial_floats(item) * (item.split_end - item.split_begin);
  auto* partials = reinterpret_cast<float*>(
      scratch(Scratch::kPartials, floats * static_cast<int64_t>(sizeof(float))));
  std::vector<AttentionPiece> parts;
  float* next = partials;
  for (auto& item : items) {
    item.partials = next;
    const int64_t splits = item.split_end - item.split_begin;
    const int64_t step = (splits + pieces - 1) / pieces;
    for (int64_t split = item.split_begin; split < item.split_end; split += step) {
      AttentionPiece part = item;
      part.split_begin = split;
      part.split_end = std::min(split + step, item.split_end);
      part.partials += (split - item.split_begin) * table.partial_floats(item);
      parts.push_back(part);
    }
    next += splits * table.partial_floats(item);
  }
  attend_all(parts, false);
  attend_all(items, true);
}

}  // namespace

void paged_attention(const PagedAttentionArgs& args) {
  const AttentionJob job = job_of(args);
  const int64_t wanted = compute_pool().threads() > 1 ? 2 * compute_pool().threads() : 1;
  const int64_t group = job.q_heads / job.layout.kv_heads;
  std::vector<AttentionPiece> items = list_items(job, args.batch, group);
  if (items.empty()) return;
  // Reading K and V again for other heads is cheaper than storing many heads' partials.
  if (static_cast<int64_t>(items.size()) < wanted && group > kHeadBlock)
    items = list_items(job, args.batch, kHeadBlock);
  const bool long_enough = std::any_of(items.begin(), items.end(), [](const AttentionPiece& item) {
    return item.split_end - item.split_begin > 1;
  });
  if (static_cast<int64_t>(items.size()) < wanted && long_enough) {
    attend_in_pieces(std::move(items), wanted);
  } else {
    attend_all(items, false);
  }
}

}  // namespace octavo::cpu
