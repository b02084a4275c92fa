// cost_table.h (metal_sim) - prints one line per operation: what its kernels cost.
#pragma once

#include <map>
#include <string>

#include "metal_sim/simulator.h"

namespace octavo::metal_sim {

// Prints the head of a table. `unit`: what operations and bytes are divided by, such as "weight".
void print_cost_head(const std::string& unit);

// counts: the launches of one operation. units: how many weights (or elements of keys and values)
// it has.
void print_costs(const std::string& name, const std::string& shape,
                 const std::map<std::string, KernelCounts>& counts, double units);

}  // namespace octavo::metal_sim
