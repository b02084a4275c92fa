#include "metal_sim/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>

namespace octavo::metal_sim {
namespace {

// Of all kernels of an operation.
struct Sum {
  double units = 0;
  OperationCosts operations;
  MemoryCosts loads;
  MemoryCosts stores;
  MemoryCosts threadgroup;
  double barriers = 0;
  double groups = 0;
  size_t threadgroup_bytes = 0;
};

Sum sum_of(const std::map<std::string, KernelCounts>& counts, double units) {
  Sum sum;
  sum.units = units;
  for (const auto& [name, kernel] : counts) {
    sum.operations.add(kernel.operations);
    for (const auto& [argument, accesses] : kernel.arguments) {
      sum.loads.add(accesses.load_costs);
      sum.stores.add(accesses.store_costs);
    }
    sum.threadgroup.add(kernel.threadgroup_loads);
    sum.threadgroup.add(kernel.threadgroup_stores);
    sum.barriers += static_cast<double>(kernel.barriers);
    sum.groups += static_cast<double>(kernel.threadgroups);
    sum.threadgroup_bytes = std::max(sum.threadgroup_bytes, kernel.threadgroup_bytes);
  }
  return sum;
}

std::string ratio(uint64_t count, double of) {
  return of == 0 ? "-" : fmt::format("{:.3g}", static_cast<double>(count) / of);
}

struct Measure {
  std::string name;
  std::function<std::string(const Sum&)> value;
};

Measure operations(const char* name, Operation kind) {
  return {name, [kind](const Sum& sum) { return ratio(sum.operations.of(kind), sum.units); }};
}

std::string passes(const Sum& sum) {
  const auto requests = static_cast<double>(sum.threadgroup.requests);
  if (requests == 0) return "-";
  return ratio(sum.threadgroup.passes, requests) + " / " +
         ratio(sum.threadgroup.least_passes, requests);
}

std::string chain(const Sum& sum) {
  const OperationCosts& costs = sum.operations;
  return fmt::format("{} of {}, {}", costs.block_chain, costs.block_operations,
                     costs.block_carried);
}

std::string registers(const Sum& sum) {
  const OperationCosts& costs = sum.operations;
  if (costs.registers == 0) return "-";
  return costs.spilled_bytes == 0
             ? std::to_string(costs.registers)
             : fmt::format("{} and {} bytes", costs.registers, costs.spilled_bytes);
}

std::vector<Measure> measures(const std::string& unit) {
  return {
      {"operations per " + unit,
       [](const Sum& sum) { return ratio(sum.operations.arithmetic(), sum.units); }},
      operations("...multiply-adds", Operation::kMultiplyAdd),
      operations("...multiply-adds of matrices", Operation::kMatrix),
      operations("...other float", Operation::kFloat),
      operations("...quotients and functions", Operation::kSpecial),
      operations("...integer", Operation::kInteger),
      operations("...conversions", Operation::kConversion),
      operations("...between lanes", Operation::kLane),
      operations("...accesses to arrays on the stack", Operation::kPrivate),
      operations("half to float, not included", Operation::kHalf),
      operations("addresses, not included", Operation::kAddress),
      {"bytes loaded per " + unit,
       [](const Sum& sum) { return ratio(sum.loads.bytes, sum.units); }},
      {"bytes per lane of a load",
       [](const Sum& sum) {
         return ratio(sum.loads.lane_bytes, static_cast<double>(sum.loads.lanes));
       }},
      {"lines per load",
       [](const Sum& sum) {
         return ratio(sum.loads.lines, static_cast<double>(sum.loads.requests));
       }},
      {"bank passes / least", passes},
      {"barriers per threadgroup",
       [](const Sum& sum) { return fmt::format("{:.3g}", sum.barriers / sum.groups); }},
      {"threadgroup bytes", [](const Sum& sum) { return std::to_string(sum.threadgroup_bytes); }},
      {"chain, carried", chain},
      {"registers (estimated)", registers},
  };
}

}  // namespace

void CostTable::add(const std::string& name, const std::map<std::string, KernelCounts>& counts,
                    double units) {
  names_.push_back(name);
  columns_.push_back(counts);
  units_.push_back(units);
}

void CostTable::print_row(const std::string& measure,
                          const std::vector<std::string>& values) const {
  std::string line = "| " + measure + " |";
  for (const std::string& value : values) line += " " + value + " |";
  std::puts(line.c_str());
}

void CostTable::print() const {
  std::puts("");
  print_row(title_, names_);
  std::string rule = "|---|";
  for (size_t i = 0; i < names_.size(); ++i) rule += "--:|";
  std::puts(rule.c_str());
  for (const Measure& measure : measures(unit_)) {
    std::vector<std::string> values;
    for (size_t i = 0; i < columns_.size(); ++i)
      values.push_back(measure.value(sum_of(columns_[i], units_[i])));
    const auto is_nothing = [](const std::string& value) { return value == "0" || value == "-"; };
    if (!std::ranges::all_of(values, is_nothing)) print_row(measure.name, values);
  }
  std::fflush(stdout);
}

}  // namespace octavo::metal_sim
