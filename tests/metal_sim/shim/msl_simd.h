// msl_simd.h (metal_sim) - barriers and operations between the lanes of a simdgroup.
#pragma once

// The simulator's own memory, not the kernel's.
#define MSL_UNCHECKED __attribute__((no_sanitize("thread")))
// Inlined also where only one of the functions is checked.
#define MSL_INLINE __attribute__((always_inline))
// The location of the call, for messages and to check that all lanes are at the same one.
#define MSL_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace metal {

enum class mem_flags : int {
  mem_none = 0,
  mem_device = msl::kOrdersDevice,
  mem_threadgroup = msl::kOrdersThreadgroup,
};
inline constexpr mem_flags operator|(mem_flags a, mem_flags b) {
  return mem_flags(int(a) | int(b));
}
#ifdef MSL_REGISTERS
inline void threadgroup_barrier(mem_flags) { __builtin_amdgcn_s_barrier(); }
inline void simdgroup_barrier(mem_flags) { asm volatile("" ::: "memory"); }
#else
inline void threadgroup_barrier(mem_flags flags, MSL_HERE) {
  msl_barrier(false, (int)flags, file, line);
}
inline void simdgroup_barrier(mem_flags flags, MSL_HERE) {
  msl_barrier(true, (int)flags, file, line);
}
#endif

}  // namespace metal

namespace msl {

#ifdef MSL_REGISTERS
template <class T, class Combine>
inline T reduce(T value, Combine, const char*, const char*, int) {
  return in_registers(value);
}
template <class T, class Combine>
inline T scan(T value, T, bool, Combine, const char*, const char*, int) {
  return in_registers(value);
}
#else
template <class T>
MSL_UNCHECKED inline T value_of_lane(const Exchange* exchange, uint lane, const char* operation,
                                     const char* file, int line) {
  if (lane >= kSimdLanes || !(exchange->active >> lane & 1))
    msl_fail("%s:%d: %s reads lane %u, which takes no part", file, line, operation, lane);
  T value;
  __builtin_memcpy(&value, exchange->values[lane], sizeof(T));
  return value;
}

// Reduces as a tree over the participating lanes; computed by the first lane that continues.
template <class T, class Combine>
MSL_LANE_OPERATION MSL_UNCHECKED inline T reduce(T value, Combine combine, const char* operation,
                                                 const char* file, int line) {
  Exchange* exchange = msl_exchange(&value, sizeof(T), operation, file, line);
  if (!exchange->reduced) {
    T parts[kSimdLanes];
    int count = 0;
    for (int lane = 0; lane < kSimdLanes; ++lane)
      if (exchange->active >> lane & 1)
        __builtin_memcpy(&parts[count++], exchange->values[lane], sizeof(T));
    while (count > 1) {
      int half_count = 0;
      for (int i = 0; i < count; i += 2)
        parts[half_count++] = i + 1 < count ? (T)combine(parts[i], parts[i + 1]) : parts[i];
      count = half_count;
    }
    __builtin_memcpy(exchange->result, &parts[0], sizeof(T));
    exchange->reduced = true;
  }
  T result;
  __builtin_memcpy(&result, exchange->result, sizeof(T));
  return result;
}

template <class T, class Combine>
MSL_LANE_OPERATION MSL_UNCHECKED inline T scan(T value, T start, bool inclusive, Combine combine,
                                               const char* operation, const char* file, int line) {
  const Exchange* exchange = msl_exchange(&value, sizeof(T), operation, file, line);
  T sum = start;
  for (uint lane = 0; lane < msl_lane() + inclusive; ++lane) {
    if (!(exchange->active >> lane & 1)) continue;
    T part;
    __builtin_memcpy(&part, exchange->values[lane], sizeof(T));
    sum = (T)combine(sum, part);
  }
  return sum;
}
#endif

}  // namespace msl

namespace metal {

#ifdef MSL_REGISTERS
#define MSL_SHUFFLE(T, name, parameters, lane_expression, own_if_outside) \
  inline T name(T value, parameters MSL_HERE) { return msl::in_registers(value); }
#else
#define MSL_SHUFFLE(T, name, parameters, lane_expression, own_if_outside)               \
  MSL_LANE_OPERATION MSL_UNCHECKED inline T name(T value, parameters MSL_HERE) {        \
    const msl::Exchange* exchange = msl_exchange(&value, sizeof(T), #name, file, line); \
    const int lane = (int)(lane_expression);                                            \
    if (own_if_outside && (lane < 0 || lane >= msl::kSimdLanes)) return value;          \
    return msl::value_of_lane<T>(exchange, (uint)lane, #name, file, line);              \
  }
#endif
#define MSL_COMMA ,
#define MSL_SHUFFLES(T)                                                                          \
  MSL_SHUFFLE(T, simd_shuffle, ushort from MSL_COMMA, from, false)                               \
  MSL_SHUFFLE(T, simd_shuffle_xor, ushort mask MSL_COMMA, msl_lane() ^ mask, false)              \
  MSL_SHUFFLE(T, simd_shuffle_down, ushort distance MSL_COMMA, (int)msl_lane() + distance, true) \
  MSL_SHUFFLE(T, simd_shuffle_up, ushort distance MSL_COMMA, (int)msl_lane() - distance, true)   \
  MSL_SHUFFLE(T, simd_broadcast, ushort from MSL_COMMA, from, false)                             \
  MSL_SHUFFLE(T, simd_broadcast_first, , __builtin_ctz(exchange->active), false)
#define MSL_REDUCE(T, name, expression)                                                    \
  inline T name(T value, MSL_HERE) {                                                       \
    return msl::reduce(                                                                    \
        value, [](T a, T b) MSL_UNCHECKED { return (T)(expression); }, #name, file, line); \
  }
#define MSL_SCAN(T, name, start, inclusive, expression)                                            \
  inline T name(T value, MSL_HERE) {                                                               \
    return msl::scan(                                                                              \
        value, (T)start, inclusive, [](T a, T b) MSL_UNCHECKED { return (T)(expression); }, #name, \
        file, line);                                                                               \
  }
#define MSL_LANES(T)                                     \
  MSL_SHUFFLES(T)                                        \
  MSL_SHUFFLES(T##2)                                     \
  MSL_SHUFFLES(T##3)                                     \
  MSL_SHUFFLES(T##4)                                     \
  MSL_REDUCE(T, simd_sum, a + b)                         \
  MSL_REDUCE(T, simd_product, a* b)                      \
  MSL_REDUCE(T, simd_max, a < b ? b : a)                 \
  MSL_REDUCE(T, simd_min, b < a ? b : a)                 \
  MSL_SCAN(T, simd_prefix_inclusive_sum, 0, true, a + b) \
  MSL_SCAN(T, simd_prefix_exclusive_sum, 0, false, a + b)
// Metal has none for 64-bit integers, bfloat and bool.
MSL_LANES(half)
MSL_LANES(float)
MSL_LANES(short)
MSL_LANES(ushort)
MSL_LANES(int)
MSL_LANES(uint)
MSL_REDUCE(int, simd_and, a& b)
MSL_REDUCE(uint, simd_and, a& b)
MSL_REDUCE(int, simd_or, a | b)
MSL_REDUCE(uint, simd_or, a | b)
MSL_REDUCE(int, simd_xor, a ^ b)
MSL_REDUCE(uint, simd_xor, a ^ b)
inline bool simd_any(bool value, MSL_HERE) {
  return msl::reduce((int)value, [](int a, int b) MSL_UNCHECKED { return a | b; }, "simd_any", file,
                     line);
}
inline bool simd_all(bool value, MSL_HERE) {
  return msl::reduce((int)value, [](int a, int b) MSL_UNCHECKED { return a & b; }, "simd_all", file,
                     line);
}

}  // namespace metal
