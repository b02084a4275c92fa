#include "models/row_orders.h"

#include <cstddef>

namespace octavo {

std::vector<int> rope_row_order(int rows, int head_dim, int rope_dims) {
  std::vector<int> order(static_cast<size_t>(rows));
  const int half = rope_dims / 2;
  for (int row = 0; row < rows; ++row) {
    const int within = row % head_dim;
    order[static_cast<size_t>(row)] =
        within < rope_dims ? row - within + within % half * 2 + within / half : row;
  }
  return order;
}

std::vector<int> gates_first(const AttentionPlan& plan) {
  std::vector<int> order;
  for (const int part : {plan.head_dim, 0}) {
    for (int head = 0; head < plan.heads; ++head)
      for (int row = 0; row < plan.head_dim; ++row)
        order.push_back(2 * head * plan.head_dim + part + row);
  }
  return order;
}

}  // namespace octavo
