#include "metal_sim/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace octavo::metal_sim {
namespace {

// Of all kernels of an operation.
struct Sum {
  OperationCosts operations;
  MemoryCosts loads;
  MemoryCosts stores;
  MemoryCosts threadgroup;
  double barriers = 0;
  double groups = 0;
  size_t threadgroup_bytes = 0;
};

Sum sum_of(const std::map<std::string, KernelCounts>& counts) {
  Sum sum;
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

}  // namespace

void print_cost_head(const std::string& unit) {
  fmt::print(
      "\n| kernel | shape | operations per {0} | multiply-add | matrix | float | special | integer "
      "| convert | lanes | stack | half | address | bytes loaded per {0} | bytes per lane | lines "
      "per load | bank passes | least | barriers | threadgroup bytes | inner block | chain | "
      "carried | registers | spilled |\n|---|---|{1}\n",
      unit, [] {
        std::string columns;
        for (int i = 0; i < 23; ++i) columns += "--:|";
        return columns;
      }());
}

void print_costs(const std::string& name, const std::string& shape,
                 const std::map<std::string, KernelCounts>& counts, double units) {
  const Sum sum = sum_of(counts);
  std::string line =
      fmt::format("| {} | {} | {} |", name, shape, ratio(sum.operations.arithmetic(), units));
  for (const Operation kind :
       {Operation::kMultiplyAdd, Operation::kMatrix, Operation::kFloat, Operation::kSpecial,
        Operation::kInteger, Operation::kConversion, Operation::kLane, Operation::kPrivate,
        Operation::kHalf, Operation::kAddress})
    line += fmt::format(" {} |", ratio(sum.operations.of(kind), units));
  const auto requests = static_cast<double>(sum.loads.requests);
  const auto banked = static_cast<double>(sum.threadgroup.requests);
  line += fmt::format(" {} | {} | {} | {} | {} | {:.3g} | {} | {} | {} | {} | {} | {} |",
                      ratio(sum.loads.bytes, units),
                      ratio(sum.loads.lane_bytes, static_cast<double>(sum.loads.lanes)),
                      ratio(sum.loads.lines, requests), ratio(sum.threadgroup.passes, banked),
                      ratio(sum.threadgroup.least_passes, banked), sum.barriers / sum.groups,
                      sum.threadgroup_bytes, sum.operations.block_operations,
                      sum.operations.block_chain, sum.operations.block_carried,
                      sum.operations.registers, sum.operations.spilled_bytes);
  std::puts(line.c_str());
  std::fflush(stdout);
}

}  // namespace octavo::metal_sim
