#include "kernels/reference/state_blocks.h"

#include "kernels/reference/host_ints.h"

namespace octavo::reference {
namespace {

struct BlockShape {
  int count, first, per_page, column;
  int bytes;
  mx::Shape shape;
  mx::Dtype dtype;
};

BlockShape block_shape(const StateGeometry& g, StatePart part) {
  if (part == StatePart::kRecurrent) {
    return {g.heads,
            g.first_head,
            g.heads_per_page,
            0,
            static_cast<int>(g.head_bytes()),
            {g.heads, g.v_dim, g.k_dim},
            mx::float32};
  }
  return {g.conv_units,
          g.first_unit,
          g.units_per_page,
          g.conv_column,
          static_cast<int>(g.unit_bytes()),
          {g.conv_units, g.conv_rows, g.unit_channels},
          mlx_dtype(g.conv_dtype)};
}

// Page and byte of every block.
struct Places {
  std::vector<int> pages;
  std::vector<int> bytes;
};

Places places_of(const BlockShape& blocks, const StateRows& rows, int first_column) {
  Places places;
  for (int i = 0; i < blocks.count; ++i) {
    const int block = blocks.first + i;
    const int column = first_column + blocks.column + block / blocks.per_page;
    places.pages.push_back(rows.table[static_cast<size_t>(column)]);
    places.bytes.push_back(block % blocks.per_page * blocks.bytes);
  }
  return places;
}

}  // namespace

std::vector<StateRows> state_rows(const BatchLayout& layout, const mx::array& table) {
  const auto cu = host_ints(layout.cu_seqlens_q);
  const auto ids = host_ints(table);
  const auto columns = static_cast<std::ptrdiff_t>(table.shape(1));
  std::vector<StateRows> out;
  for (int s = 0; s < layout.sequences(); ++s) {
    const auto row = ids.begin() + s * columns;
    const auto at = static_cast<size_t>(s);
    if (cu[at] < cu[at + 1]) out.push_back({cu[at], cu[at + 1], {row, row + columns}});
  }
  return out;
}

mx::array read_state(const StatePages& pages, const StateRows& rows, StatePart part) {
  const BlockShape blocks = block_shape(pages.geometry, part);
  const Places places = places_of(blocks, rows, 0);
  if (places.pages.front() < 0) return mx::zeros(blocks.shape, blocks.dtype);
  const mx::array raw = mx::gather(
      pages.bytes, {host_array(places.pages), host_array(places.bytes)}, {0, 1}, {1, blocks.bytes});
  return mx::reshape(
      mx::view(mx::contiguous(mx::reshape(raw, {blocks.count, blocks.bytes})), blocks.dtype),
      blocks.shape);
}

StatePages write_state(const StatePages& pages, const StateRows& rows, StatePart part,
                       const mx::array& state, int row) {
  const BlockShape blocks = block_shape(pages.geometry, part);
  const Places places = places_of(blocks, rows, (1 + row) * pages.geometry.columns);
  const mx::array raw =
      mx::view(mx::contiguous(mx::reshape(state, {blocks.count, 1, -1})), mx::uint8);
  const mx::array bytes =
      mx::scatter(pages.bytes, {host_array(places.pages), host_array(places.bytes)}, raw, {0, 1});
  return {bytes, pages.geometry, pages.path};
}

}  // namespace octavo::reference
