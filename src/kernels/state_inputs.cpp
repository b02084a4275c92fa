#include "kernels/state_inputs.h"

#include "base/error.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

void check_heads(const StateGeometry& g, size_t page_bytes) {
  if (g.heads == 0) return;
  for (int dim : {g.k_dim, g.v_dim})
    OCTAVO_CHECK(dim > 0 && dim % kStateDimStep == 0 && dim <= kLargestStateDim);
  OCTAVO_CHECK(g.first_head >= 0 && g.heads_per_page > 0);
  OCTAVO_CHECK((g.first_head + g.heads - 1) / g.heads_per_page < g.columns);
  OCTAVO_CHECK(static_cast<size_t>(g.heads_per_page) * g.head_bytes() <= page_bytes);
}

void check_conv(const StateGeometry& g, size_t page_bytes) {
  if (g.conv_units == 0) return;
  OCTAVO_CHECK(g.conv_rows > 0 && g.conv_rows <= kLargestConvRows);
  OCTAVO_CHECK(g.unit_channels > 0 && g.unit_channels % kStateDimStep == 0);
  OCTAVO_CHECK(g.conv_column >= 0 && g.first_unit >= 0 && g.units_per_page > 0);
  OCTAVO_CHECK(g.conv_column + (g.first_unit + g.conv_units - 1) / g.units_per_page < g.columns);
  OCTAVO_CHECK(static_cast<size_t>(g.units_per_page) * g.unit_bytes() <= page_bytes);
}

}  // namespace

void check_state(const StatePages& pages, const BatchLayout& layout, const mx::array& table) {
  OCTAVO_CHECK(pages.bytes.ndim() == 2 && pages.bytes.dtype() == mx::uint8);
  const auto page_bytes = static_cast<size_t>(pages.bytes.shape(1));
  OCTAVO_CHECK(page_bytes % sizeof(float) == 0);
  check_heads(pages.geometry, page_bytes);
  check_conv(pages.geometry, page_bytes);
  OCTAVO_CHECK(layout.cu_seqlens_q.shape(0) == layout.sequences() + 1);
  OCTAVO_CHECK(table.ndim() == 2 && table.shape(0) == layout.sequences());
  OCTAVO_CHECK(table.shape(1) >= 2 * pages.geometry.columns &&
               table.shape(1) % pages.geometry.columns == 0);
  for (const auto* array : {&layout.cu_seqlens_q, &table})
    OCTAVO_CHECK(array->dtype() == mx::int32);
}

std::vector<mx::array> state_inputs(const StatePages& pages, const BatchLayout& layout,
                                    const mx::array& table) {
  return {pages.bytes, layout.cu_seqlens_q, table};
}

cpu::StateBatch state_batch(const std::vector<mx::array>& inputs, const StateGeometry& geometry) {
  for (const auto& input : inputs) require_contiguous(input);
  const mx::array& pages = inputs[0];
  const mx::array& table = inputs[2];
  return {
      .cu_seqlens_q = inputs[1].data<int32_t>(),
      .table = table.data<int32_t>(),
      .table_columns = table.shape(1),
      .sequences = table.shape(0),
      .pages = const_cast<std::byte*>(pages.data<std::byte>()),
      .page_count = pages.shape(0),
      .page_stride = pages.shape(1),
      .geometry = geometry,
  };
}

}  // namespace octavo
