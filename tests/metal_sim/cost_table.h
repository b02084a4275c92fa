// cost_table.h (metal_sim) - prints what kernels cost: one column per operation.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "metal_sim/simulator.h"

namespace octavo::metal_sim {

class CostTable {
 public:
  // unit: what operations and bytes are divided by, such as "weight".
  CostTable(std::string title, std::string unit)
      : title_(std::move(title)), unit_(std::move(unit)) {}

  // counts: the launches of one operation, which has so many units.
  void add(const std::string& name, const std::map<std::string, KernelCounts>& counts,
           double units);
  void print() const;

 private:
  void print_row(const std::string& measure, const std::vector<std::string>& values) const;

  std::string title_;
  std::string unit_;
  std::vector<std::string> names_;
  std::vector<std::map<std::string, KernelCounts>> columns_;
  std::vector<double> units_;
};

}  // namespace octavo::metal_sim
