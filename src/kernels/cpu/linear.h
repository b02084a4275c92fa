// linear.h (cpu) - products of rows with packed weights over raw memory. No MLX.
#pragma once

#include <array>
#include <initializer_list>
#include <memory>
#include <span>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lora.h"

namespace octavo::cpu {

struct PackedProjection {
  PackedView weight = {};
  const void* bias = nullptr;
};

// Up to four products of one x, side by side in the output, or one gated pair.
struct LinearArgs {
  RowsJob x = {};  // prepared and arithmetic are filled in here
  std::array<PackedProjection, kMaxJoined> parts = {};
  size_t part_count = 0;
  bool is_gated = false;  // parts[0] is the gate, parts[1] the up projection
  Activation activation = Activation::kSilu;
  DType bias_dtype = DType::kFloat32;
  std::shared_ptr<const LoraArgs> lora = nullptr;  // null: no adapters
  const void* residual = nullptr;
  float scale = 1;
  float soft_cap = 0;
  void* out = nullptr;
  DType out_dtype = DType::kFloat32;
  int64_t out_stride = 0;
};

// Threads claim strips of weight rows. The order of the sum over inputs depends on the weight
// alone, not on the number of rows.
void linear(const LinearArgs& args);

// The arithmetic of a product of rows of type `x` with weights of these layouts.
Arithmetic arithmetic_of(DType x, std::initializer_list<const PackedLayout*> weights);

// Runs all jobs; threads claim strips across them.
void run_products(std::span<const LinearJob> jobs);

// Upper bound of linear()'s scratch memory: prepared rows and decoded strips.
int64_t linear_scratch_bytes(int64_t rows, int64_t cols, int threads);

}  // namespace octavo::cpu
