// msl_matrix.h (metal_sim) - simdgroup_matrix, 8 x 8.
//
// Each lane holds two adjacent elements of a row. Metal does not specify of which row and columns; here they are
// those of Apple's GPUs, on which MLX's kernels rely. Our kernels read them from a matrix.
#pragma once

namespace metal {

template <class T, int Rows, int Cols>
struct simdgroup_matrix {
  static_assert(Rows == 8 && Cols == 8, "simdgroup_matrix: 8 x 8 only");
  static_assert(is_same_v<T, half> || is_same_v<T, bfloat> || is_same_v<T, float>,
                "simdgroup_matrix: of floats only");
  alignas(2 * sizeof(T)) T held[2];

  simdgroup_matrix() = default;
  msl::Vector<T, 2>& thread_elements() { return *(msl::Vector<T, 2>*)held; }
  explicit simdgroup_matrix(T diagonal) {
    const uint r = row(msl_lane()), c = col(msl_lane());
    held[0] = r == c ? diagonal : (T)0;
    held[1] = r == c + 1 ? diagonal : (T)0;
  }
  MSL_INLINE static uint row(uint lane) { return (lane / 4 & 4) + lane / 2 % 4; }
  MSL_INLINE static uint col(uint lane) { return (lane / 4 & 2) * 2 + lane % 2 * 2; }
  // The lane that holds (row, col).
  MSL_INLINE static uint lane(uint row, uint col) {
    return (row & 4) * 4 + (col & 4) * 2 + row % 4 * 2 + col / 2 % 2;
  }
};

typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;

template <class T, int Rows, int Cols>
inline simdgroup_matrix<T, Rows, Cols> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, Rows, Cols> matrix;
  matrix.held[0] = matrix.held[1] = value;
  return matrix;
}

#ifdef MSL_COSTS
// Two adjacent elements are one access.
#define MSL_LOAD_PAIR(held, from, step, transpose) \
  if (!transpose) {                                \
    __builtin_memcpy(held, from, 2 * sizeof(T));   \
    return;                                        \
  }                                                \
  held[0] = from[0];                               \
  held[1] = from[step];
#else
#define MSL_LOAD_PAIR(held, from, step, transpose) \
  held[0] = from[0];                               \
  held[1] = from[step];
#endif
// Accesses of every lane are checked as usual; the exchange ensures that all lanes take part.
#define MSL_MATRIX_MEMORY(SPACE)                                                                  \
  template <class T>                                                                              \
  inline void simdgroup_load(simdgroup_matrix<T, 8, 8>& matrix, const SPACE T* from,              \
                             ulong stride = 8, ulong2 origin = ulong2(0), bool transpose = false, \
                             MSL_HERE) {                                                          \
    msl::require_all_lanes("simdgroup_load", file, line);                                         \
    const ulong row = matrix.row(msl_lane()), col = matrix.col(msl_lane());                       \
    from += origin.y * stride + origin.x;                                                         \
    const ulong step = transpose ? stride : 1;                                                    \
    from += transpose ? col * stride + row : row * stride + col;                                  \
    MSL_LOAD_PAIR(matrix.held, from, step, transpose)                                             \
  }                                                                                               \
  template <class T>                                                                              \
  inline void simdgroup_store(simdgroup_matrix<T, 8, 8> matrix, SPACE T* to, ulong stride = 8,    \
                              ulong2 origin = ulong2(0), bool transpose = false, MSL_HERE) {      \
    msl::require_all_lanes("simdgroup_store", file, line);                                        \
    const ulong row = matrix.row(msl_lane()), col = matrix.col(msl_lane());                       \
    to += origin.y * stride + origin.x;                                                           \
    const ulong step = transpose ? stride : 1;                                                    \
    to += transpose ? col * stride + row : row * stride + col;                                    \
    to[0] = matrix.held[0];                                                                       \
    to[step] = matrix.held[1];                                                                    \
  }

}  // namespace metal

namespace msl {

#ifdef MSL_REGISTERS
inline void require_all_lanes(const char*, const char*, int) {}
#else
MSL_UNCHECKED inline Exchange* with_all_lanes(const void* value, uint size, const char* operation,
                                              const char* file, int line) {
  Exchange* exchange = msl_exchange(value, size, operation, file, line);
  if (exchange->active != ~0u) msl_fail("%s:%d: %s without all 32 lanes", file, line, operation);
  return exchange;
}
inline void require_all_lanes(const char* operation, const char* file, int line) {
#ifndef MSL_COSTS
  const int nothing = 0;
  with_all_lanes(&nothing, sizeof nothing, operation, file, line);
#endif
}

// One lane's part of a * b + c: float inside, one fma after the other in the order of the inner
// index.
MSL_LANE_OPERATION MSL_UNCHECKED inline Vector<float, 2> matrix_product(
    Vector<float, 2> a, Vector<float, 2> b, Vector<float, 2> c, const char* file, int line) {
  using Layout = metal::simdgroup_matrix<float, 8, 8>;
  const Vector<float, 2> mine[2] = {a, b};
  const Exchange* exchange =
      with_all_lanes(mine, sizeof mine, "simdgroup_multiply_accumulate", file, line);
  const uint row = Layout::row(msl_lane()), col = Layout::col(msl_lane());
  for (uint k = 0; k < 8; ++k) {
    const float* of_a = (const float*)exchange->values[Layout::lane(row, k)];
    const float* of_b = (const float*)exchange->values[Layout::lane(k, col)];
    for (int i = 0; i < 2; ++i) c[i] = __builtin_fmaf(of_a[k % 2], of_b[2 + i], c[i]);
  }
  return c;
}
#endif

}  // namespace msl

namespace metal {

MSL_MATRIX_MEMORY(device)
#ifdef MSL_LINT
MSL_MATRIX_MEMORY(threadgroup)
#endif

template <class D, class A, class B>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                                          simdgroup_matrix<B, 8, 8> b, simdgroup_matrix<D, 8, 8> c,
                                          MSL_HERE) {
  static_assert(is_same_v<A, B>, "simdgroup_multiply_accumulate: both factors of one type");
  msl::count_multiply_adds(16);  // each lane's share of 512
  const float2 of_a = {(float)a.held[0], (float)a.held[1]};
  const float2 of_b = {(float)b.held[0], (float)b.held[1]};
  const float2 of_c = {(float)c.held[0], (float)c.held[1]};
#ifdef MSL_REGISTERS
  const float2 sum = msl::matrix_registers<A>(a.thread_elements(), b.thread_elements(), of_c);
#else
  const float2 sum = msl::matrix_product(of_a, of_b, of_c, file, line);
#endif
  for (int i = 0; i < 2; ++i) d.held[i] = (D)sum[i];
}

template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, simdgroup_matrix<A, 8, 8> a,
                               simdgroup_matrix<B, 8, 8> b, MSL_HERE) {
  simdgroup_multiply_accumulate(d, a, b, make_filled_simdgroup_matrix<D, 8, 8>((D)0), file, line);
}

}  // namespace metal
