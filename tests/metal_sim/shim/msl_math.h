// msl_math.h (metal_sim) - metal_math, metal_common, metal_integer.
//
// Plain overloads, no templates: a call that is ambiguous in Metal, such as max(half, float), is
// also ambiguous here. Metal has no bfloat overloads; kernels compute in float.
#pragma once

namespace msl {

inline void count_multiply_adds(uint64_t count) {
#if !defined(MSL_LINT) && !defined(MSL_COSTS)
  // The counter is not kernel memory. Accesses through an address space unknown to the compiler are
  // not instrumented; the empty assembly keeps it from removing the address space.
  uintptr_t at;
  asm("" : "=r"(at) : "0"(&msl_multiply_adds));
  *(__attribute__((address_space(1))) uint64_t*)at += count;
#endif
}

}  // namespace msl

namespace metal {

// Vector forms of a function of scalars.
#define MSL_VECTOR_1(V, name)                                          \
  inline V name(V a) {                                                 \
    V r;                                                               \
    for (int i = 0; i < msl::Shape<V>::kCount; ++i) r[i] = name(a[i]); \
    return r;                                                          \
  }
#define MSL_VECTOR_2(V, name)                                                \
  inline V name(V a, V b) {                                                  \
    V r;                                                                     \
    for (int i = 0; i < msl::Shape<V>::kCount; ++i) r[i] = name(a[i], b[i]); \
    return r;                                                                \
  }
#define MSL_VECTOR_3(V, name)                                                      \
  inline V name(V a, V b, V c) {                                                   \
    V r;                                                                           \
    for (int i = 0; i < msl::Shape<V>::kCount; ++i) r[i] = name(a[i], b[i], c[i]); \
    return r;                                                                      \
  }
#define MSL_VECTORS(n, T, name) \
  MSL_VECTOR_##n(T##2, name) MSL_VECTOR_##n(T##3, name) MSL_VECTOR_##n(T##4, name)

// Functions of floats: half overloads compute in float and round once.
#define MSL_FLOAT_1(T, name, builtin)                 \
  inline T name(T a) { return (T)builtin((float)a); } \
  MSL_VECTORS(1, T, name)
#define MSL_FLOAT_2(T, name, builtin)                                \
  inline T name(T a, T b) { return (T)builtin((float)a, (float)b); } \
  MSL_VECTORS(2, T, name)
#define MSL_BOTH_1(name, builtin) MSL_FLOAT_1(half, name, builtin) MSL_FLOAT_1(float, name, builtin)
#define MSL_BOTH_2(name, builtin) MSL_FLOAT_2(half, name, builtin) MSL_FLOAT_2(float, name, builtin)
#define MSL_INVERSE_ROOT(x) (1.0f / __builtin_sqrtf(x))
#define MSL_QUOTIENT(a, b) ((a) / (b))
// Functions that the AMD back end lacks (msl_registers.h).
#ifdef MSL_REGISTERS
#define MSL_LIBRARY(builtin) msl::in_registers
#else
#define MSL_LIBRARY(builtin) builtin
#endif
#define MSL_FUNCTIONS                              \
  MSL_BOTH_1(exp, __builtin_expf)                  \
  MSL_BOTH_1(exp2, __builtin_exp2f)                \
  MSL_BOTH_1(log, __builtin_logf)                  \
  MSL_BOTH_1(log2, __builtin_log2f)                \
  MSL_BOTH_1(log10, __builtin_log10f)              \
  MSL_BOTH_1(sqrt, __builtin_sqrtf)                \
  MSL_BOTH_1(rsqrt, MSL_INVERSE_ROOT)              \
  MSL_BOTH_1(sin, __builtin_sinf)                  \
  MSL_BOTH_1(cos, __builtin_cosf)                  \
  MSL_BOTH_1(tan, MSL_LIBRARY(__builtin_tanf))     \
  MSL_BOTH_1(atan, MSL_LIBRARY(__builtin_atanf))   \
  MSL_BOTH_1(sinh, MSL_LIBRARY(__builtin_sinhf))   \
  MSL_BOTH_1(cosh, MSL_LIBRARY(__builtin_coshf))   \
  MSL_BOTH_1(tanh, MSL_LIBRARY(__builtin_tanhf))   \
  MSL_BOTH_1(fabs, __builtin_fabsf)                \
  MSL_BOTH_1(floor, __builtin_floorf)              \
  MSL_BOTH_1(ceil, __builtin_ceilf)                \
  MSL_BOTH_1(trunc, __builtin_truncf)              \
  MSL_BOTH_1(rint, __builtin_rintf)                \
  MSL_BOTH_1(round, __builtin_roundf)              \
  MSL_BOTH_2(pow, MSL_LIBRARY(__builtin_powf))     \
  MSL_BOTH_2(atan2, MSL_LIBRARY(__builtin_atan2f)) \
  MSL_BOTH_2(copysign, __builtin_copysignf)        \
  MSL_BOTH_2(fmod, MSL_LIBRARY(__builtin_fmodf))   \
  MSL_BOTH_2(fmax, __builtin_fmaxf)                \
  MSL_BOTH_2(fmin, __builtin_fminf)                \
  MSL_BOTH_2(divide, MSL_QUOTIENT)
MSL_FUNCTIONS
namespace fast {
MSL_FUNCTIONS
}
namespace precise {
MSL_FUNCTIONS
}
#undef MSL_FUNCTIONS

inline float fma(float a, float b, float c) {
  msl::count_multiply_adds(1);
  return __builtin_fmaf(a, b, c);
}
inline half fma(half a, half b, half c) {
  msl::count_multiply_adds(1);
  return (half)__builtin_fma((double)a, (double)b, (double)c);
}
MSL_VECTORS(3, float, fma)
MSL_VECTORS(3, half, fma)

#define MSL_FLOAT_MORE(T)                                                                     \
  inline T ldexp(T a, int exponent) { return (T)__builtin_ldexpf((float)a, exponent); }       \
  inline T mix(T a, T b, T share) { return a + (b - a) * share; }                             \
  inline T dot(T##2 a, T##2 b) { return msl::count_multiply_adds(2), a.x * b.x + a.y * b.y; } \
  inline T dot(T##3 a, T##3 b) {                                                              \
    return msl::count_multiply_adds(3), a.x * b.x + a.y * b.y + a.z * b.z;                    \
  }                                                                                           \
  inline T dot(T##4 a, T##4 b) {                                                              \
    return msl::count_multiply_adds(4), a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;        \
  }
MSL_FLOAT_MORE(half)
MSL_FLOAT_MORE(float)

inline bool isnan(float a) { return a != a; }
inline bool isnan(half a) { return a != a; }
inline bool isinf(float a) { return __builtin_isinf(a); }
inline bool isinf(half a) { return __builtin_isinf((float)a); }
inline bool isfinite(float a) { return __builtin_isfinite(a); }
inline bool isfinite(half a) { return __builtin_isfinite((float)a); }

// If one argument is NaN, the result is the other, as in IEEE minNum.
#define MSL_ORDER(T)                                                    \
  inline T max(T a, T b) { return a < b || a != a ? b : a; }            \
  inline T min(T a, T b) { return b < a || a != a ? b : a; }            \
  inline T clamp(T x, T low, T high) { return min(max(x, low), high); } \
  MSL_VECTORS(2, T, max)                                                \
  MSL_VECTORS(2, T, min)                                                \
  MSL_VECTORS(3, T, clamp)
#define MSL_SELECT_VECTOR(V, B)                                                \
  inline V select(V a, V b, B c) {                                             \
    V r;                                                                       \
    for (int i = 0; i < msl::Shape<V>::kCount; ++i) r[i] = c[i] ? b[i] : a[i]; \
    return r;                                                                  \
  }
#define MSL_SELECT(T)                                     \
  inline T select(T a, T b, bool c) { return c ? b : a; } \
  MSL_SELECT_VECTOR(T##2, bool2)                          \
  MSL_SELECT_VECTOR(T##3, bool3)                          \
  MSL_SELECT_VECTOR(T##4, bool4)
MSL_ORDER(half)
MSL_ORDER(float)
MSL_FOR_INTEGERS(MSL_ORDER)
MSL_SELECT(half)
MSL_SELECT(float)
MSL_FOR_INTEGERS(MSL_SELECT)
// In clang, vector comparisons return integers of the element size.
MSL_SELECT_VECTOR(float2, int2)
MSL_SELECT_VECTOR(float4, int4)
MSL_SELECT_VECTOR(half2, short2)
MSL_SELECT_VECTOR(half4, short4)
MSL_SELECT_VECTOR(int4, int4)
MSL_SELECT_VECTOR(uint4, int4)

#define MSL_ABS(T)                                     \
  inline T abs(T a) { return a < (T)0 ? (T) - a : a; } \
  MSL_VECTORS(1, T, abs)
MSL_ABS(half)
MSL_ABS(float)
MSL_ABS(short)
MSL_ABS(int)
MSL_ABS(long)

inline uint popcount(uint x) { return (uint)__builtin_popcount(x); }
inline ulong popcount(ulong x) { return (ulong)__builtin_popcountl(x); }
inline uint clz(uint x) { return x ? (uint)__builtin_clz(x) : 32; }
inline uint ctz(uint x) { return x ? (uint)__builtin_ctz(x) : 32; }
inline uint reverse_bits(uint x) { return __builtin_bitreverse32(x); }
inline uint rotate(uint x, uint n) { return x << (n & 31) | x >> ((32 - n) & 31); }
inline uint mulhi(uint a, uint b) { return (uint)((ulong)a * b >> 32); }
inline int mulhi(int a, int b) { return (int)((long)a * b >> 32); }
inline ulong mulhi(ulong a, ulong b) { return (ulong)((unsigned __int128)a * b >> 64); }
inline uint extract_bits(uint x, uint offset, uint bits) {
  return bits == 0 ? 0 : x << (32 - bits - offset) >> (32 - bits);
}

inline bool any(bool2 v) { return v[0] || v[1]; }
inline bool any(bool4 v) { return v[0] || v[1] || v[2] || v[3]; }
inline bool all(bool2 v) { return v[0] && v[1]; }
inline bool all(bool4 v) { return v[0] && v[1] && v[2] && v[3]; }

}  // namespace metal
