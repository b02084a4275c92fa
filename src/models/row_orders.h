// row_orders.h - orders in which a projection's rows are loaded. No MLX.
#pragma once

#include <vector>

#include "models/plans/attention_plan.h"

namespace octavo {

// Entry r: the row of an interleaved matrix that becomes row r in halves order. Row (head, pair,
// half) becomes (head, half, pair); rows that are not rotated stay in place.
std::vector<int> rope_row_order(int rows, int head_dim, int rope_dims);

// For a q_proj whose heads have a gate after their q: all gates, then all q.
std::vector<int> gates_first(const AttentionPlan& plan);

}  // namespace octavo
