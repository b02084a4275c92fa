#include "kernels/page_inputs.h"

#include "base/error.h"
#include "kernels/runtime/primitive.h"

namespace octavo {

void check_layout(const KvPages& pages, const BatchLayout& layout, const mx::array& block_tables) {
  OCTAVO_CHECK(pages.geometry.block_tokens > 0 && pages.geometry.block_tokens % 8 == 0);
  OCTAVO_CHECK(!pages.geometry.values_in_keys || (pages.geometry.format == KvFormat::kPlain &&
                                                  pages.geometry.v_dim <= pages.geometry.k_dim));
  OCTAVO_CHECK(pages.bytes.ndim() == 2 && pages.bytes.dtype() == mx::uint8);
  OCTAVO_CHECK(static_cast<size_t>(pages.bytes.shape(1)) >= pages.geometry.page_bytes());
  OCTAVO_CHECK(layout.cu_seqlens_q.shape(0) == layout.sequences() + 1);
  OCTAVO_CHECK(block_tables.ndim() == 2 && block_tables.shape(0) == layout.sequences());
  for (const auto* array :
       {&layout.positions, &layout.cu_seqlens_q, &layout.context_lens, &block_tables}) {
    OCTAVO_CHECK(array->dtype() == mx::int32);
  }
  OCTAVO_CHECK(!layout.last_visible || (layout.last_visible->shape() == layout.positions.shape() &&
                                        layout.last_visible->dtype() == mx::int32));
}

std::vector<mx::array> page_inputs(const KvPages& pages, const BatchLayout& layout,
                                   const mx::array& block_tables) {
  return {pages.bytes, layout.cu_seqlens_q, layout.context_lens, block_tables};
}

cpu::PagedBatch page_batch(const std::vector<mx::array>& inputs, const PageGeometry& geometry) {
  for (const auto& input : inputs) require_contiguous(input);
  const mx::array& pages = inputs[0];
  const mx::array& tables = inputs[3];
  return {
      .cu_seqlens_q = inputs[1].data<int32_t>(),
      .context_lens = inputs[2].data<int32_t>(),
      .block_tables = tables.data<int32_t>(),
      .table_columns = tables.shape(1),
      .sequences = tables.shape(0),
      .pages = const_cast<std::byte*>(pages.data<std::byte>()),
      .page_count = pages.shape(0),
      .page_stride = pages.shape(1),
      .geometry = geometry,
  };
}

metal::PageTargets page_targets(const std::vector<mx::array>& inputs, const mx::array& pages,
                                const PageGeometry& geometry) {
  return {.geometry = geometry,
          .pages = pages,
          .cu_seqlens_q = inputs[1],
          .context_lens = inputs[2],
          .block_tables = inputs[3]};
}

}  // namespace octavo
