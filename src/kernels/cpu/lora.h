// lora.h (cpu) - LoRA adapters of products: multiplies A with the rows of each slot. The products' own
// kernels multiply the results with B (simd/lora.h). No MLX.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/cpu/kernel_table.h"
#include "kernels/cpu/lora_job.h"
#include "kernels/lora_plan.h"
#include "kernels/lora_shape.h"

namespace octavo::cpu {

inline constexpr size_t kMaxJoined = 4;

// The adapters of a call, by part.
struct LoraArgs {
  std::shared_ptr<const LoraPlan> plan;
  std::vector<LoraView> layers;  // no slots: the part has no adapters
};

// What the products of a call add. Its memory is the calling thread's until the next call.
class LoraProducts {
 public:
  // x: the rows of the call. With `gathered`, row m of the plan is row gathered[m] of x. If x has
  // prepared rows, in the arithmetic of A, these are multiplied by every adapter; else the rows of each
  // adapter are prepared and multiplied on their own.
  LoraProducts(const RowsJob& x, const LoraArgs& args);

  // Null if no row has an adapter that changes the part.
  const LoraJob* job(size_t part) const {
    return jobs_[part].groups != nullptr ? &jobs_[part] : nullptr;
  }

 private:
  std::array<std::vector<LoraGroupJob>, kMaxJoined> groups_;
  std::array<LoraJob, kMaxJoined> jobs_ = {};
};

// In which A is multiplied.
Arithmetic lora_arithmetic(DType x, const LoraArgs& args);

// Whether multiplying all rows by every adapter is faster than preparing the rows of each.
bool lora_shares_rows(int64_t rows, Arithmetic arithmetic);

// Upper bound of the scratch memory of a call with adapters, besides linear_scratch_bytes(). The rows of
// experts are never shared.
int64_t lora_scratch_bytes(int64_t rows, int64_t cols, int slots, int max_rank, bool may_share);

}  // namespace octavo::cpu
