// The oracle: one sequence at a time, in plain MLX operations.
#include "kernels/paged_attention.h"

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "base/error.h"
#include "kernels/reference/host_ints.h"
#include "kernels/reference/slice_rows.h"

namespace octavo::reference {
namespace {

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

// Byte offsets of the parts of a page: K and V [block_tokens, kv_heads, dim], then for int8
// their scales [block_tokens, kv_heads] float32.
struct Part {
  int begin;
  int bytes;
};

Part numbers_part(const PageGeometry& g, bool values) {
  if (values) return {static_cast<int>(g.k_bytes()), static_cast<int>(g.v_bytes())};
  return {0, static_cast<int>(g.k_bytes())};
}

Part scales_part(const PageGeometry& g, bool values) {
  const auto bytes = static_cast<int>(g.scale_bytes());
  return {static_cast<int>(g.k_bytes() + g.v_bytes()) + (values ? bytes : 0), bytes};
}

// One part of `raw` [blocks, page bytes] as float32 [context, kv_heads, dim].
mx::array read_part(const mx::array& raw, const PageGeometry& g, Part part, mx::Dtype dtype,
                    int dim, int context) {
  const int blocks = raw.shape(0);
  mx::array numbers = mx::slice(raw, {0, part.begin}, {blocks, part.begin + part.bytes});
  numbers = mx::view(mx::contiguous(numbers), dtype);
  numbers = mx::reshape(numbers, {blocks * g.block_tokens, g.kv_heads, dim});
  return mx::astype(slice_rows(numbers, 0, context), mx::float32);
}

// K (or V) of positions [0, context) of one sequence: [context, kv_heads, dim] float32.
mx::array gather(const KvPages& pages, const mx::array& table, int context, bool values) {
  const PageGeometry& g = pages.geometry;
  const int blocks = (context + g.block_tokens - 1) / g.block_tokens;
  if (values && g.values_in_keys) {
    return mx::slice(gather(pages, table, context, false), {0, 0, 0},
                     {context, g.kv_heads, g.v_dim});
  }
  const int dim = values ? g.v_dim : g.k_dim;
  const mx::array raw = mx::take(pages.bytes, slice_rows(table, 0, blocks), 0);
  const Part part = numbers_part(g, values);
  if (g.format == KvFormat::kPlain)
    return read_part(raw, g, part, mlx_dtype(g.dtype), dim, context);
  return mx::multiply(read_part(raw, g, part, mx::int8, dim, context),
                      read_part(raw, g, scales_part(g, values), mx::float32, 1, context));
}

// [q rows, context]: true if the row sees the key. last_visible: of the batch.
mx::array visible(const Rows& rows, int window, const std::optional<mx::array>& last_visible) {
  const mx::array row = mx::expand_dims(mx::arange(rows.start(), rows.context), 1);
  const mx::array key = mx::expand_dims(mx::arange(0, rows.context), 0);
  const mx::array last =
      last_visible ? mx::expand_dims(slice_rows(*last_visible, rows.begin, rows.end), 1) : row;
  mx::array mask = mx::less_equal(key, last);
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
  if (options.sinks) {
    const mx::array sinks = mx::reshape(*options.sinks, {q.shape(1), 1, 1});
    const mx::array column = mx::broadcast_to(sinks, {q.shape(1), q.shape(0), 1});
    scores = mx::concatenate({scores, column}, -1);
  }
  mx::array weights = mx::softmax(scores, -1, true);
  weights = mx::slice(weights, {0, 0, 0}, {q.shape(1), q.shape(0), k.shape(0)});
  const mx::array out = mx::matmul(weights, value_rows);
  return mx::transpose(out, {1, 0, 2});
}

struct Quantised {
  mx::array codes;   // int8
  mx::array scales;  // float32, one per row
};

// x: [T, heads, dim]
Quantised quantise(const mx::array& x) {
  const mx::array wide = mx::astype(x, mx::float32);
  const mx::array top = mx::max(mx::abs(wide), -1, true);
  const mx::array zero(0.0f);
  const mx::array factor =
      mx::where(mx::greater(top, zero), mx::divide(mx::array(127.0f), top), zero);
  const mx::array codes =
      mx::clip(mx::round(mx::multiply(wide, factor)), mx::array(-127.0f), mx::array(127.0f));
  return {mx::astype(codes, mx::int8), mx::divide(top, mx::array(127.0f))};
}

}  // namespace

KvPages kv_write(const KvPages& pages, const mx::array& k, const mx::array& v,
                 const BatchLayout& layout, const mx::array& block_tables) {
  count_launch("kv_write.reference");
  const PageGeometry& g = pages.geometry;
  const auto tables = host_ints(block_tables);
  const auto columns = static_cast<size_t>(block_tables.shape(1));
  std::vector<int> page_ids;
  std::vector<int> slots;  // index inside the page
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
  mx::array bytes = pages.bytes;
  auto put = [&](const mx::array& rows, Part part) {
    const int tokens = layout.tokens();
    const mx::array flat = mx::view(mx::contiguous(mx::reshape(rows, {tokens, -1})), mx::uint8);
    const mx::array place =
        mx::add(mx::multiply(slot, mx::array(flat.shape(1))), mx::array(part.begin));
    bytes = mx::scatter(bytes, {page, place}, mx::expand_dims(flat, 1), {0, 1});
  };
  for (const bool values : {false, true}) {
    if (values && g.values_in_keys) continue;
    const mx::array& rows = values ? v : k;
    if (g.format == KvFormat::kPlain) {
      put(rows, numbers_part(g, values));
    } else {
      const Quantised quantised = quantise(rows);
      put(quantised.codes, numbers_part(g, values));
      put(quantised.scales, scales_part(g, values));
    }
  }
  return {bytes, g, pages.path};
}

mx::array paged_attention(const mx::array& q, const KvPages& pages, const BatchLayout& layout,
                          const mx::array& block_tables, const AttentionOptions& options) {
  count_launch("paged_attention.reference");
  std::vector<mx::array> outputs;
  for (int s = 0; s < layout.sequences(); ++s) {
    const Rows rows = rows_of(layout, s);
    if (rows.begin == rows.end) continue;
    const mx::array table = mx::flatten(slice_rows(block_tables, s, s + 1));
    outputs.push_back(attend(slice_rows(q, rows.begin, rows.end),
                             gather(pages, table, rows.context, false),
                             gather(pages, table, rows.context, true),
                             visible(rows, options.window, layout.last_visible), options));
  }
  return mx::astype(mx::concatenate(outputs, 0), q.dtype());
}

}  // namespace octavo::reference
