#include "kernels/cpu/page_layout.h"

namespace octavo::cpu {

PageLayout page_layout(const PageGeometry& geometry) {
  PageLayout layout = plain_page_layout(geometry);
  layout.paired_values =
      !layout.int8 && !layout.values_in_keys && geometry.dtype == DType::kBFloat16;
  return layout;
}

PageLayout plain_page_layout(const PageGeometry& geometry) {
  PageLayout layout;
  layout.dtype = geometry.dtype;
  layout.int8 = geometry.format == KvFormat::kInt8;
  layout.values_in_keys = geometry.values_in_keys;
  layout.block_tokens = geometry.block_tokens;
  layout.kv_heads = geometry.kv_heads;
  layout.k_dim = geometry.k_dim;
  layout.v_dim = geometry.v_dim;
  const auto width = static_cast<int64_t>(geometry.element_bytes());
  layout.k_row_bytes = geometry.k_dim * width;
  const int64_t k_bytes = layout.block_tokens * layout.k_row_bytes;
  int64_t v_bytes = 0;
  if (layout.values_in_keys) {
    layout.v_row_bytes = layout.k_row_bytes;
    layout.v_first = 0;
  } else {
    layout.v_row_bytes = geometry.v_dim * width;
    layout.v_first = k_bytes;
    v_bytes = layout.block_tokens * layout.v_row_bytes;
  }
  layout.k_scales = k_bytes + v_bytes;
  const int64_t scales =
      layout.int8 ? layout.block_tokens * static_cast<int64_t>(sizeof(float)) : 0;
  layout.v_scales = layout.k_scales + scales;
  layout.head_bytes = layout.v_scales + scales;
  return layout;
}

}  // namespace octavo::cpu
