// speed_estimate.h (metal_sim) - the table "Estimated speed" of docs/metal.md: limits of a model's
// products on some GPUs, from counted operations and published figures.
#pragma once

#include <map>
#include <string>

#include "metal_sim/simulator.h"

namespace octavo::metal_sim {

void print_speed_head();

struct EstimatedProduct {
  std::string format;
  int rows;
  double bytes_per_weight;
  double weights;  // of the product that was counted
};

// counts: the launches of one product.
void print_speed(const EstimatedProduct& product,
                 const std::map<std::string, KernelCounts>& counts);

}  // namespace octavo::metal_sim
