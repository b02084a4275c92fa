#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/linear_amx.h"
#include "kernels/cpu/simd/linear_codes.h"
#include "kernels/cpu/simd/linear_codes_amx.h"
#include "kernels/cpu/simd/linear_dot.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static int64_t prepared_bytes(int64_t rows, int64_t cols, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::kInteger) return digits_bytes(rows, cols);
#ifdef OCTAVO_SIMD_AMX
  if (arithmetic == Arithmetic::kBFloat16) return amx_prepared_bytes(rows, cols);
#elif defined(OCTAVO_SIMD_BF16)
  if (arithmetic == Arithmetic::kBFloat16) return rows * prepared_cols(cols) * 2;
#endif
  return rows * prepared_cols(cols) * 4;
}

static void prepare(const RowsJob& job, int64_t row_begin, int64_t row_end) {
#ifdef OCTAVO_SIMD_AMX
  if (job.arithmetic == Arithmetic::kInteger && job.form_rows() > kVectorRows)
    return prepare_tile_rows(job, row_begin, row_end);
  if (job.arithmetic == Arithmetic::kBFloat16) return amx_prepare(job, row_begin, row_end);
#elif defined(OCTAVO_SIMD_BF16)
  if (job.arithmetic == Arithmetic::kBFloat16) return prepare_rows_bf16(job, row_begin, row_end);
#endif
  if (job.arithmetic == Arithmetic::kInteger) return prepare_digits(job, row_begin, row_end);
  prepare_rows_f32(job, row_begin, row_end);
}

static int64_t linear_scratch(const LinearJob& job, int64_t strips) {
#ifdef OCTAVO_SIMD_AMX
  if (job.arithmetic == Arithmetic::kInteger) return codes_amx_scratch(job);
  if (job.arithmetic == Arithmetic::kBFloat16) return 0;
#elif defined(OCTAVO_SIMD_BF16)
  if (job.arithmetic == Arithmetic::kBFloat16) return 0;
#endif
  if (job.arithmetic == Arithmetic::kInteger) return 0;
  return dot_scratch<DotF32>(job, strips);
}

static void linear(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                   std::byte* scratch) {
#ifdef OCTAVO_SIMD_AMX
  if (job.arithmetic == Arithmetic::kInteger)
    return linear_codes_amx(job, strip_begin, strip_end, scratch);
  if (job.arithmetic == Arithmetic::kBFloat16) return linear_amx(job, strip_begin, strip_end);
#elif defined(OCTAVO_SIMD_BF16)
  if (job.arithmetic == Arithmetic::kBFloat16)
    return linear_dot<DotBF16>(job, strip_begin, strip_end, scratch);
#endif
  if (job.arithmetic == Arithmetic::kInteger) return linear_codes(job, strip_begin, strip_end);
  linear_dot<DotF32>(job, strip_begin, strip_end, scratch);
}

void add_linear_kernels(KernelTable& table) {
#ifdef OCTAVO_SIMD_AMX
  table.configure_tiles = configure_tiles;
#endif
  table.prepared_bytes = prepared_bytes;
  table.prepare = prepare;
  table.linear_scratch = linear_scratch;
  table.linear = linear;
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
