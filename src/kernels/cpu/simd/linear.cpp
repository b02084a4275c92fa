#include "kernels/cpu/simd/amx_tiles.h"
#include "kernels/cpu/simd/families.h"
#include "kernels/cpu/simd/linear_amx.h"
#include "kernels/cpu/simd/linear_codes.h"
#include "kernels/cpu/simd/linear_codes_amx.h"
#include "kernels/cpu/simd/linear_dense.h"
#include "kernels/cpu/simd/linear_dot.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

static int64_t prepared_bytes(int64_t rows, int64_t cols, Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kInteger:
      return digits_bytes(rows, cols);
    case Arithmetic::kBFloat16:
#ifdef OCTAVO_SIMD_AMX
      return amx_prepared_bytes(rows, cols);
#else
      return dense_prepared_bytes(rows, cols);
#endif
    case Arithmetic::kFloat32:
      break;
  }
  return rows * prepared_cols(cols) * 4;
}

static void prepare(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  switch (job.arithmetic) {
    case Arithmetic::kInteger:
#ifdef OCTAVO_SIMD_AMX
      if (job.form_rows() > kVectorRows) return prepare_tile_rows(job, row_begin, row_end);
#endif
      return prepare_digits(job, row_begin, row_end);
    case Arithmetic::kBFloat16:
#ifdef OCTAVO_SIMD_AMX
      return amx_prepare(job, row_begin, row_end);
#else
      return prepare_dense_rows(job, row_begin, row_end);
#endif
    case Arithmetic::kFloat32:
      break;
  }
  prepare_rows_f32(job, row_begin, row_end);
}

static int64_t linear_scratch(const LinearJob& job, int64_t strips) {
#ifdef OCTAVO_SIMD_AMX
  if (job.arithmetic == Arithmetic::kInteger) return codes_amx_scratch(job);
#endif
  return job.arithmetic == Arithmetic::kFloat32 ? dot_scratch(job, strips) : 0;
}

static void linear(const LinearJob& job, int64_t strip_begin, int64_t strip_end,
                   std::byte* scratch) {
  switch (job.arithmetic) {
    case Arithmetic::kInteger:
#ifdef OCTAVO_SIMD_AMX
      return linear_codes_amx(job, strip_begin, strip_end, scratch);
#else
      return linear_codes(job, strip_begin, strip_end);
#endif
    case Arithmetic::kBFloat16:
#ifdef OCTAVO_SIMD_AMX
      return linear_amx(job, strip_begin, strip_end);
#else
      return linear_dense(job, strip_begin, strip_end);
#endif
    case Arithmetic::kFloat32:
      break;
  }
  linear_dot(job, strip_begin, strip_end, scratch);
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
