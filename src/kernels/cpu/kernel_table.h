// kernel_table.h - the kernels that each instruction set implements, over raw memory. The callers
// split the work over threads; results do not depend on the split. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/attention_item.h"
#include "kernels/cpu/conv_job.h"
#include "kernels/cpu/delta_job.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/latent_job.h"
#include "kernels/cpu/lora_job.h"
#include "kernels/cpu/mamba_job.h"
#include "kernels/cpu/qkv_job.h"
#include "kernels/types/activation_kind.h"
#include "kernels/types/expert_choice.h"
#include "kernels/types/norm_kind.h"
#include "kernels/weights/packed_weight.h"

namespace octavo::cpu {

// The arithmetic of a product. It depends on the types of x and of the weights, never on the number
// of rows, and gives the same bits on every set.
enum class Arithmetic : uint8_t {
  kFloat32,   // x and the weights widened to float32 (simd/linear_dot.h)
  kBFloat16,  // bfloat16 x and weights, sums in float32 in the order of the tile unit
              // (simd/linear_dense.h, simd/linear_amx.h)
  kInteger,   // bfloat16 x as integers of 12 bits, quantised weights as their codes (simd/digits.h,
              // simd/linear_codes.h)
};

// Prepares the rows of a product: norm if requested, rounding to their own type, and the layout
// that the product reads.
struct RowsJob {
  const void* x = nullptr;            // [rows, cols]
  const int32_t* gathered = nullptr;  // [rows]: row m is row gathered[m] of x; null: row m
  DType dtype = DType::kFloat32;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t stride = 0;  // elements from one row of x to the next; 0: cols
  Norm norm = Norm::kNone;
  const void* norm_weight = nullptr;  // [parts * cols]
  DType norm_dtype = DType::kFloat32;
  const void* norm_bias = nullptr;  // [cols] of norm_dtype, layer norm only
  // norm_rows only: a row of the model is this many rows here, each with weights of its own.
  int64_t parts = 1;
  float eps = 0;
  Arithmetic arithmetic = Arithmetic::kFloat32;
  int64_t most_rows = 0;          // of one product with these rows, if they are for several
  std::byte* prepared = nullptr;  // prepared_bytes(rows, cols, arithmetic), aligned to 64

  // Decides between forms of prepared rows; a product must have the same number.
  int64_t form_rows() const { return most_rows > 0 ? most_rows : rows; }

  // Where row m begins in x, in elements.
  int64_t begin_of(int64_t m) const {
    return (gathered != nullptr ? gathered[m] : m) * (stride > 0 ? stride : cols);
  }
};

// out = (x + scale * norm(y)) * out_scale; x and out are laid out as y is.
struct AddRowsJob {
  const void* x = nullptr;
  RowsJob y = {};  // its arithmetic and prepared are not used
  float scale = 1;
  float out_scale = 1;
  void* out = nullptr;
};

// y = scale * x W^T, or activation(x W^T) * (x U^T), + residual, capped.
struct LinearJob {
  const std::byte* prepared = nullptr;
  Arithmetic arithmetic = Arithmetic::kFloat32;
  int64_t rows = 0;
  int64_t most_rows = 0;  // as in RowsJob
  PackedView weight = {};
  PackedView up = {};          // gated: a matrix of the same shape; else no data
  const void* bias = nullptr;  // [weight rows]
  const void* up_bias = nullptr;
  DType bias_dtype = DType::kFloat32;
  const LoraJob* lora = nullptr;     // added to the product; null: nothing
  const LoraJob* up_lora = nullptr;  // likewise, to the product of `up`
  Activation activation = Activation::kSilu;
  const void* residual = nullptr;  // laid out as the output
  float scale = 1;                 // on the product and its bias; ungated products only
  float soft_cap = 0;   // > 0: y becomes soft_cap * tanh(y / soft_cap); without gate and residual
  void* out = nullptr;  // row m at m * out_stride; this matrix's outputs from out_first on
  DType out_dtype = DType::kFloat32;
  int64_t out_stride = 0;
  int64_t out_first = 0;

  int64_t form_rows() const { return most_rows > 0 ? most_rows : rows; }
};

// The output of a token's experts: residual + (sums + gate * shared), where gate is
// sigmoid(shared_gate) or 1.
struct ExpertSums {
  const float* sums = nullptr;  // row t at t * sums_stride, in whole vectors of 16
  int64_t sums_stride = 0;
  int64_t count = 0;             // outputs per row
  const void* shared = nullptr;  // laid out as the output, as is the residual; each may be null
  const float* shared_gate = nullptr;  // [tokens], or null
  const void* residual = nullptr;
  void* out = nullptr;  // row t at t * out_stride + out_first
  DType dtype = DType::kFloat32;
  int64_t out_stride = 0;
  int64_t out_first = 0;
};

// out = x * gate, or x * sigmoid(gate). Strides are elements from one row to the next.
struct GateJob {
  const void* x = nullptr;  // the first column used of row 0; gate likewise
  const void* gate = nullptr;
  int64_t x_stride = 0;
  int64_t gate_stride = 0;
  DType dtype = DType::kFloat32;
  bool sigmoid = false;
  int64_t rows = 0;
  int64_t cols = 0;
  void* out = nullptr;  // [rows, cols]
};

// Logits per block; each block has one maximum and one sum of weights.
inline constexpr int64_t kLogitBlock = 256;
inline constexpr float kLog2E = 1.44269504f;
// Thresholds per call of sums_from().
inline constexpr int kThresholds = 4;

// 2^((logit - largest) * scale), which is 1 for the largest; 0 for those below `floor` <= 1.
struct WeighJob {
  const float* logits = nullptr;
  int64_t count = 0;
  float largest = 0;  // finite
  float scale = 1;    // finite: log2(e) / temperature
  float floor = 0;
};

// [from, to)
struct LogitRange {
  float from = 0;
  float to = 0;
};

// The elementary functions of simd/math.h.
enum class Elementary : uint8_t {
  kExp,
  kExp2,
  kTanh,
  kSigmoid,
  kSoftplus,
  kSilu,
  kGeluTanh,
  kErf,
  kGelu,
};

// Rows per pass of a matrix unit: prepare() is called on multiples of it.
inline constexpr int64_t kRowBlock = 16;

struct KernelTable {
  void (*configure_tiles)() = nullptr;  // null if the set has no tiles

  int64_t (*prepared_bytes)(int64_t rows, int64_t cols, Arithmetic arithmetic) = nullptr;
  void (*prepare)(const RowsJob&, int64_t row_begin, int64_t row_end) = nullptr;
  // Bytes (a multiple of 64) of scratch for `strips` strips of the job, aligned to 64.
  int64_t (*linear_scratch)(const LinearJob&, int64_t strips) = nullptr;
  void (*linear)(const LinearJob&, int64_t strip_begin, int64_t strip_end,
                 std::byte* scratch) = nullptr;

  // One token's logits as kSoftmax or kSigmoid scores; `scores` may be `logits`.
  void (*expert_scores)(const float* logits, int64_t count, ExpertScore kind,
                        float* scores) = nullptr;
  // sums += weight * product, in whole vectors of 16.
  void (*add_weighted)(float* sums, const float* product, float weight, int64_t count) = nullptr;
  // For one token.
  void (*finish_sums)(const ExpertSums&, int64_t token) = nullptr;

  // y = norm(x) row by row, `out` has the layout of x.
  void (*norm_rows)(const RowsJob&, void* out, int64_t row_begin, int64_t row_end) = nullptr;
  void (*add_rows)(const AddRowsJob&, int64_t row_begin, int64_t row_end) = nullptr;
  // activation(gate) * up over `count` elements of `dtype`; without up: activation(gate).
  void (*gated)(const void* gate, const void* up, void* out, DType dtype, Activation activation,
                int64_t count) = nullptr;
  void (*gate_rows)(const GateJob&, int64_t row_begin, int64_t row_end) = nullptr;
  // The first index of the largest number; NaN counts as minus infinity.
  int64_t (*argmax)(const float* values, int64_t count) = nullptr;

  // Kernels over rows of logits in blocks of kLogitBlock, the last of which may be shorter. NaN
  // counts as minus infinity.
  void (*block_maxima)(const float* logits, int64_t count, float* maxima) = nullptr;
  // Writes the job's weights and the sum of each block.
  void (*weigh)(const WeighJob&, float* weights, float* sums) = nullptr;
  // sums[i]: the sum of the weights (null: 1 per logit) of the logits >= thresholds[i].
  void (*sums_from)(const float* logits, const float* weights, int64_t count,
                    const float* thresholds, double* sums) = nullptr;
  // Sets the weights of logits below `threshold` to zero and returns the sum of the others, for one
  // block.
  float (*keep_from)(const float* logits, float* weights, int64_t count, float threshold) = nullptr;
  // Writes first + i for each logit i in [from, to), in ascending order; returns how many. count is
  // at most kLogitBlock, the capacity of `out`.
  int64_t (*indices_within)(const float* logits, int64_t count, LogitRange range, int32_t first,
                            int32_t* out) = nullptr;

  // Bytes of scratch, aligned to 64, for attend and merge_partials.
  int64_t (*attention_scratch)(const AttentionPiece&) = nullptr;
  void (*attend)(const AttentionPiece&, std::byte* scratch) = nullptr;
  // For one split of the piece.
  int64_t (*partial_floats)(const AttentionPiece&) = nullptr;
  // Folds the partials of the piece's splits, starting at `partials`, and writes its rows.
  void (*merge_partials)(const AttentionPiece&, std::byte* scratch) = nullptr;
  void (*qkv_rows)(const QkvJob&, int64_t token_begin, int64_t token_end) = nullptr;

  void (*conv_rows)(const ConvItem&) = nullptr;
  // Writes decay and beta of the rows, for all heads.
  void (*delta_gates)(const DeltaJob&, int64_t row_begin, int64_t row_end) = nullptr;
  // Bytes of scratch, aligned to 64, for delta_head.
  int64_t (*delta_scratch)(const DeltaJob&) = nullptr;
  void (*delta_head)(const DeltaItem&, std::byte* scratch) = nullptr;
  // Writes decay and step of the rows, for all heads.
  void (*mamba_gates)(const MambaJob&, int64_t row_begin, int64_t row_end) = nullptr;
  // Bytes of scratch, aligned to 64, for mamba_head.
  int64_t (*mamba_scratch)(const MambaJob&) = nullptr;
  void (*mamba_head)(const MambaItem&, std::byte* scratch) = nullptr;
  void (*latent_rows)(const LatentJob&, int64_t token_begin, int64_t token_end) = nullptr;

  // y = function(x) over `count` numbers, for tests: kernels use the functions themselves.
  void (*elementary)(Elementary function, const float* x, int64_t count, float* y) = nullptr;
};

const KernelTable& kernels_of(Isa isa);
const KernelTable& kernels();  // the active set's

// Each instruction set fills in every entry. Only the sets of OCTAVO_ISAS are part of the build.
namespace scalar {
void fill_table(KernelTable& table);
}
namespace neon {
void fill_table(KernelTable& table);
}
namespace avx2 {
void fill_table(KernelTable& table);
}
namespace avx512 {
void fill_table(KernelTable& table);
}
namespace avx512bf16 {
void fill_table(KernelTable& table);
}
namespace amx {
void fill_table(KernelTable& table);
}

}  // namespace octavo::cpu
