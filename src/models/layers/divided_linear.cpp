#include "models/layers/divided_linear.h"

#include <utility>

#include "models/layers/projection.h"

namespace octavo {

DividedLinear::DividedLinear(WeightSource& source, const std::string& name, int rows, int cols,
                             bool biased, RowOrder row_order) {
  add(source, name, rows, cols, biased, row_order);
}

void DividedLinear::add(WeightSource& source, const std::string& name, int rows, int cols,
                        bool biased, RowOrder row_order) {
  const std::vector<int> own = picked_rows(row_order, source.share().picks(rows));
  parts_.push_back(load_projection(source, name, rows, cols, biased, own));
  outputs_.push_back(rows);
}

mx::array DividedLinear::forward(const mx::array& x, LinearOptions options,
                                 RankExchange* ranks) const {
  if (ranks != nullptr && options.residual)
    options.residual = own_columns(*options.residual, ranks->share());
  const auto product = [&] {
    if (parts_.size() > 1) return joined_linear(x, parts_, options);
    options.bias = parts_[0].bias;
    return linear(x, parts_[0].weight, options);
  };
  const mx::array part = product();
  return ranks != nullptr ? ranks->gather(part, outputs_, kStripRows) : part;
}

}  // namespace octavo
