// state_inputs.h - the arrays that every primitive over states takes, and how a kernel sees them.
#pragma once

#include <vector>

#include "kernels/batch_layout.h"
#include "kernels/cpu/state_batch.h"
#include "kernels/state_pages.h"

namespace octavo {

// Aborts unless pages, layout and table fit together and the kernels can do the geometry.
void check_state(const StatePages& pages, const BatchLayout& layout, const mx::array& table);

// pages, cu_seqlens_q, table: what state_batch() finds again.
std::vector<mx::array> state_inputs(const StatePages& pages, const BatchLayout& layout,
                                    const mx::array& table);

// `inputs` begin with state_inputs().
cpu::StateBatch state_batch(const std::vector<mx::array>& inputs, const StateGeometry& geometry);
inline constexpr size_t kStateInputs = 3;

}  // namespace octavo
