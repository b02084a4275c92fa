// page_inputs.h - the inputs that all primitives over pages share, and their form for the kernels.
#pragma once

#include <vector>

#include "kernels/batch_layout.h"
#include "kernels/cpu/paged_attention.h"
#include "kernels/metal/qkv_write.h"
#include "kernels/paged_attention.h"

namespace octavo {

// Aborts unless pages, layout and tables are consistent.
void check_layout(const KvPages& pages, const BatchLayout& layout, const mx::array& block_tables);

// pages, cu_seqlens_q, context_lens, block_tables: the order that page_batch() expects.
std::vector<mx::array> page_inputs(const KvPages& pages, const BatchLayout& layout,
                                   const mx::array& block_tables);

// `inputs` start with page_inputs().
cpu::PagedBatch page_batch(const std::vector<mx::array>& inputs, const PageGeometry& geometry);
inline constexpr size_t kPageInputs = 4;

// The same for a Metal kernel that writes `pages`, the output that shares the input's buffer.
metal::PageTargets page_targets(const std::vector<mx::array>& inputs, const mx::array& pages,
                                const PageGeometry& geometry);

}  // namespace octavo
