// The oracle: one sequence after the other, plain MLX operations, nothing clever.
#include "kernels/paged_attention.h"

#include <cmath>
#include <limits>
#include <vector>

#include "base/error.h"

namespace octavo::reference {
namespace {

std::vector<int> host_ints(const mx::array& array) {
  mx::array copy = mx::contiguous(array);
  copy.eval();
  return {copy.data<int32_t>(), copy.data<int32_t>() + copy.size()};
}

mx::array host_array(const std::vector<int>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

// The rows of one sequence, read on the host.
struct Rows {
  int begin, end, context;
  int start() const { return context - (end - begin); }  // position of row `begin`
};

Rows rows_of(const BatchLayout& layout, int sequence) {
  const auto cu = host_ints(layout.cu_seqlens_q);
  const auto context = host_ints(layout.context_lens);
  const auto s = static_cast<size_t>(sequence);
  return {cu[s], cu[s + 1], context[s]};
}

// [first, last) along axis 0.
mx::array slice_rows(const mx::array& array, int first, int last) {
  mx::Shape start(array.ndim(), 0);
  mx::Shape stop = array.shape();
  start[0] = first;
  stop[0] = last;
  return mx::slice(array, start, stop);
}

// K (or V) of positions [0, context) of one sequence: [context, kv_heads, dim] float32.
mx::array gather(const KvPages& pages, const mx::array& table, int context, bool values) {
  const PageGeometry& g = pages.geometry;
  const int blocks = (context + g.block_tokens - 1) / g.block_tokens;
  const int dim = values ? g.v_dim : g.k_dim;
  const auto begin = static_cast<int>(values ? g.k_bytes() : 0);
  const auto bytes = static_cast<int>(values ? g.v_bytes() : g.k_bytes());
  mx::array raw = mx::take(pages.bytes, slice_rows(table, 0, blocks), 0);
  raw = mx::contiguous(mx::slice(raw, {0, begin}, {blocks, begin + bytes}));
  mx::array numbers = mx::view(raw, mlx_dtype(g.dtype));
  numbers = mx::reshape(numbers, {blocks * g.block_tokens, g.kv_heads, dim});
  return mx::astype(slice_rows(numbers, 0, context), mx::float32);
}

// [q rows, context]: true where a row may look.
mx::array visible(const Rows& rows, int window) {
  const mx::array row = mx::expand_dims(mx::arange(rows.start(), rows.context), 1);
  const mx::array key = mx::expand_dims(mx::arange(0, rows.context), 0);
  mx::array mask = mx::less_equal(key, row);
  if (window > 0)
    mask = mx::logical_and(mask, mx::greater(key, mx::subtract(row, mx::array(window))));
  return mask;
}

mx::array attend(const mx::array& q, const mx::array& k, const mx::array& v, const mx::array& mask,
                 const AttentionOptions& options) {
  const int groups = q.shape(1) / k.shape(1);
  const mx::array queries = mx::transpose(mx::astype(q, mx::float32), {1, 0, 2});
  const mx::array keys = mx::repeat(mx::transpose(k, {1, 2, 0}), groups, 0);
  const mx::array value_rows = mx::repeat(mx::transpose(v, {1, 0, 2}), groups, 0);
  mx::array scores = mx::multiply(mx::matmul(queries, keys), mx::array(options.scale));
  if (options.soft_cap > 0) {
    const mx::array cap(options.soft_cap);
    scores = mx::multiply(cap, mx::tanh(mx::divide(scores, cap)));
  }
  scores = mx::where(mask, scores, mx::array(-std::numeric_limits<float>::infinity()));
  const mx::array out = mx::matmul(mx::softmax(scores, -1, true), value_rows);
  return mx::transpose(out, {1, 0, 2});
}

}  // namespace

KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
                 const BatchLayout& layout, const mx::array& block_tables) {
  count_launch("kv_write.reference");
  const PageGeometry& g = pages.geometry;
  const auto tables = host_ints(block_tables);
  const auto columns = static_cast<size_t>(block_tables.shape(1));
  std::vector<int> page_ids;
  std::vector<int> slots;  // place inside the page
  for (int s = 0; s < layout.sequences(); ++s) {
    const Rows rows = rows_of(layout, s);
    for (int position = rows.start(); position < rows.context; ++position) {
      const auto column = static_cast<size_t>(position / g.block_tokens);
      page_ids.push_back(tables[static_cast<size_t>(s) * columns + column]);
      slots.push_back(position % g.block_tokens);
    }
  }
  const mx::array page = host_array(page_ids);
  const mx::array slot = host_array(slots);
  mx::array numbers = mx::view(pages.bytes, mlx_dtype(g.dtype));  // [pages, numbers per page]
  auto put = [&](const mx::array& source, size_t part_bytes, int dim) {
    const int width = g.kv_heads * dim;
    const auto first = static_cast<int>(part_bytes / size_of(g.dtype));
    const mx::array place = mx::add(mx::multiply(slot, mx::array(width)), mx::array(first));
    numbers = mx::scatter(numbers, {page, place}, mx::reshape(source, {layout.tokens(), 1, width}),
                          {0, 1});
  };
  put(k, 0, g.k_dim);
  put(v, g.k_bytes(), g.v_dim);
  return {mx::view(numbers, mx::uint8), g, pages.path};
}

mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options) {
  count_launch("paged_attention.reference");
  std::vector<mx::array> outputs;
  for (int s = 0; s < layout.sequences(); ++s) {
    const Rows rows = rows_of(layout, s);
    if (rows.begin == rows.end) continue;
    const mx::array table = mx::flatten(slice_rows(block_tables, s, s + 1));
    outputs.push_back(
        attend(slice_rows(q, rows.begin, rows.end), gather(pages, table, rows.context, false),
               gather(pages, table, rows.context, true), visible(rows, options.window), options));
  }
  return mx::astype(mx::concatenate(outputs, 0), q.dtype());
}

}  // namespace octavo::reference
