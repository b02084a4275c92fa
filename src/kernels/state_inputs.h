// state_inputs.h - the inputs that all primitives over states share, and their form for the
// kernels.
#pragma once

#include <vector>

#include "kernels/batch_layout.h"
#include "kernels/cpu/state_batch.h"
#include "kernels/state_pages.h"

namespace octavo {

// Aborts unless pages, layout and table are consistent and the kernels support the geometry.
void check_state(const StatePages& pages, const BatchLayout& layout, const mx::array& table);

// pages, cu_seqlens_q, table: the order that state_batch() expects.
std::vector<mx::array> state_inputs(const StatePages& pages, const BatchLayout& layout,
                                    const mx::array& table);

// `inputs` start with state_inputs().
cpu::StateBatch state_batch(const std::vector<mx::array>& inputs, const StateGeometry& geometry);
inline constexpr size_t kStateInputs = 3;

}  // namespace octavo
