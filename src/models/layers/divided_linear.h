// divided_linear.h - linear layers whose outputs may be divided over ranks.
#pragma once

#include <string>
#include <vector>

#include "kernels/linear.h"
#include "models/rank_exchange.h"
#include "models/weight_source.h"

namespace octavo {

// One layer, or several of one x whose outputs are concatenated.
class DividedLinear {
 public:
  DividedLinear() = default;
  // The layer of module `name`: [rows, cols], and [rows] of bias if `biased`. With a row order, row r
  // of both is row row_order[r] of the file. Loads this rank's part.
  DividedLinear(WeightSource& source, const std::string& name, int rows, int cols, bool biased,
                RowOrder row_order = {});
  // Adds one.
  void add(WeightSource& source, const std::string& name, int rows, int cols, bool biased,
           RowOrder row_order = {});

  // `ranks`: null on one machine. options.residual: the whole rows, with one layer; options.bias is
  // the layer's own. Returns the outputs of all ranks.
  mx::array forward(const mx::array& x, LinearOptions options, RankExchange* ranks) const;

 private:
  std::vector<Projection> parts_;
  std::vector<int> outputs_;  // of each, on all ranks together
};

}  // namespace octavo
