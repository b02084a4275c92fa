#include "metal_sim/speed_estimate.h"

#include <fmt/format.h>

#include <cstdio>

namespace octavo::metal_sim {
namespace {

struct Gpu {
  const char* name;
  double gigabytes_per_second;
  double teraflops;  // fp32: a multiply-add is two
};

constexpr Gpu kGpus[] = {
    {"M1 Pro, 16 cores", 200, 5.3}, {"M4 Max, 40 cores", 546, 17}, {"M5, 10 cores", 153, 4.1}};
constexpr double kModelWeights = 596e6;  // Qwen3-0.6B
// Measured on an M1: 101.7 of 128 multiply-adds per core and cycle.
constexpr double kMatrixRate = 0.8;

// Cycles of one lane. Every operation takes one; those on matrices take longer.
double lane_cycles(const std::map<std::string, KernelCounts>& counts) {
  double cycles = 0;
  for (const auto& [name, kernel] : counts) {
    const auto matrix = static_cast<double>(kernel.operations.of(Operation::kMatrix));
    const auto all = static_cast<double>(kernel.operations.arithmetic());
    cycles += all - matrix + matrix / kMatrixRate;
  }
  return cycles;
}

}  // namespace

void print_speed_head() {
  std::string head = "\n| product | cycles per weight |", rule = "|---|--:|";
  for (const Gpu& gpu : kGpus) {
    head += fmt::format(" {}: {:g} GB/s, {:g} TFLOP/s |", gpu.name, gpu.gigabytes_per_second,
                        gpu.teraflops);
    rule += "--:|";
  }
  std::puts(head.c_str());
  std::puts(rule.c_str());
}

void print_speed(const EstimatedProduct& product,
                 const std::map<std::string, KernelCounts>& counts) {
  const double cycles = lane_cycles(counts) / product.weights;
  std::string line = fmt::format("| {}, {} {} | {:.3g} |", product.format, product.rows,
                                 product.rows == 1 ? "row" : "rows", cycles);
  for (const Gpu& gpu : kGpus) {
    const double by_bytes =
        product.rows * gpu.gigabytes_per_second * 1e9 / (kModelWeights * product.bytes_per_weight);
    const double by_operations = product.rows * gpu.teraflops * 1e12 / 2 / (kModelWeights * cycles);
    line += fmt::format(" {:.0f} / {:.0f} |", by_bytes, by_operations);
  }
  std::puts(line.c_str());
  std::fflush(stdout);
}

}  // namespace octavo::metal_sim
