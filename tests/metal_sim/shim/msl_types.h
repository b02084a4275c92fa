// msl_types.h (metal_sim) - scalars, vectors and how they are made.
#pragma once

typedef _Float16 half;
typedef __bf16 bfloat;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;

inline constexpr half operator""h(long double value) { return (half)value; }
inline bfloat operator"" bf(long double value) { return (bfloat)value; }

#define MSL_VECTORS_OF(T)                             \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4)));
#define MSL_FOR_NUMBERS(X) X(half) X(bfloat) X(float) MSL_FOR_INTEGERS(X)
#define MSL_FOR_INTEGERS(X) X(char) X(uchar) X(short) X(ushort) X(int) X(uint) X(long) X(ulong)
MSL_FOR_NUMBERS(MSL_VECTORS_OF)
MSL_VECTORS_OF(bool)

#ifndef MSL_LINT
// clang requires it, but the compiler support library of Debian 12 lacks it. Nearest, ties to even.
extern "C" __attribute__((weak, used, visibility("hidden"), no_sanitize("thread"))) bfloat
__truncsfbf2(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  const uint16_t rounded = is_nan ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return __builtin_bit_cast(bfloat, rounded);
}
#endif

namespace msl {

template <class T, int N>
using Vector = T __attribute__((ext_vector_type(N)));

template <class T>
struct Shape {
  using Element = T;
  static constexpr int kCount = 1;
  static constexpr bool kIsVector = false;
};
template <class T, int N>
struct VectorShape {
  using Element = T;
  static constexpr int kCount = N;
  static constexpr bool kIsVector = true;
};
template <class T>
struct Shape<Vector<T, 2>> : VectorShape<T, 2> {};
template <class T>
struct Shape<Vector<T, 3>> : VectorShape<T, 3> {};
template <class T>
struct Shape<Vector<T, 4>> : VectorShape<T, 4> {};

// A parameter that is not used to deduce T.
template <class T>
struct Same {
  using Type = T;
};
template <class T>
using NotDeduced = typename Same<T>::Type;

template <class Result, class Part>
inline void append(Result& result, int& filled, Part part) {
  using Element = typename Shape<Result>::Element;
  if constexpr (Shape<Part>::kIsVector) {
    for (int i = 0; i < Shape<Part>::kCount; ++i) result[filled++] = (Element)part[i];
  } else {
    result[filled++] = (Element)part;
  }
}

// The rewriter replaces float4(...) by make<float4>(...): vectors are built from parts and
// converted element by element, where clang would reinterpret the bits. Any other type: T(...).
template <class Result, class... Parts>
inline constexpr Result make(Parts... parts) {
  if constexpr (!Shape<Result>::kIsVector) {
    return Result(parts...);
  } else if constexpr (sizeof...(Parts) == 0) {
    return Result(0);
  } else if constexpr (sizeof...(Parts) == 1 && !(Shape<Parts>::kIsVector && ...)) {
    return Result((typename Shape<Result>::Element)parts...);
  } else {
    static_assert((Shape<Parts>::kCount + ...) == Shape<Result>::kCount,
                  "MSL: wrong number of components in a vector");
    Result result{};
    int filled = 0;
    (append(result, filled, parts), ...);
    return result;
  }
}

// (float4)x is written Cast<float4>()->*x: an operator that binds as tightly as a cast, nearly.
template <class Result>
struct Cast {
  template <class From>
  Result operator->*(From from) const {
    return make<Result>(from);
  }
};

}  // namespace msl

namespace metal {

template <class T, int N>
using vec = T __attribute__((ext_vector_type(N)));

using std::bool_constant;
using std::conditional;
using std::conditional_t;
using std::enable_if;
using std::enable_if_t;
using std::false_type;
using std::integral_constant;
using std::is_integral;
using std::is_same;
using std::is_same_v;
using std::is_signed;
using std::remove_cv_t;
using std::remove_reference_t;
using std::true_type;

template <class T>
using remove_addrspace_t = remove_cv_t<T>;

template <class To, class From>
inline constexpr To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type: sizes differ");
  return __builtin_bit_cast(To, from);
}

template <class T>
struct numeric_limits : std::numeric_limits<T> {};
template <>
struct numeric_limits<half> {
  static constexpr half infinity() { return (half)__builtin_inff(); }
  static constexpr half max() { return (half)65504.0f; }
  static constexpr half lowest() { return (half)-65504.0f; }
};
template <>
struct numeric_limits<bfloat> {
  static constexpr bfloat infinity() { return (bfloat)__builtin_inff(); }
  static constexpr bfloat max() { return __builtin_bit_cast(bfloat, (unsigned short)0x7f7f); }
  static constexpr bfloat lowest() { return __builtin_bit_cast(bfloat, (unsigned short)0xff7f); }
};

}  // namespace metal
