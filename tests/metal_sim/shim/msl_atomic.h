// msl_atomic.h (metal_sim) - 32-bit relaxed atomics. GPU threads are fibers of one thread, so plain
// operations suffice.
#pragma once

namespace metal {

enum memory_order { memory_order_relaxed };
template <class T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<float> atomic_float;

#ifdef MSL_LINT
#define MSL_FETCH(SPACE, name) \
  template <class T>           \
  T atomic_fetch_##name##_explicit(volatile SPACE atomic<T>*, msl::NotDeduced<T>, memory_order);
#define MSL_ATOMICS(SPACE)                                                                      \
  MSL_FETCH(SPACE, add)                                                                         \
  MSL_FETCH(SPACE, sub)                                                                         \
  MSL_FETCH(SPACE, or)                                                                          \
  MSL_FETCH(SPACE, and)                                                                         \
  MSL_FETCH(SPACE, xor)                                                                         \
  MSL_FETCH(SPACE, max)                                                                         \
  MSL_FETCH(SPACE, min)                                                                         \
  template <class T>                                                                            \
  T atomic_exchange_explicit(volatile SPACE atomic<T>*, msl::NotDeduced<T>, memory_order);      \
  template <class T>                                                                            \
  bool atomic_compare_exchange_weak_explicit(volatile SPACE atomic<T>*, T*, msl::NotDeduced<T>, \
                                             memory_order, memory_order);                       \
  template <class T>                                                                            \
  T atomic_load_explicit(const volatile SPACE atomic<T>*, memory_order);                        \
  template <class T>                                                                            \
  void atomic_store_explicit(volatile SPACE atomic<T>*, msl::NotDeduced<T>, memory_order);
MSL_ATOMICS(device)
MSL_ATOMICS(threadgroup)
#else
#define MSL_FETCH(name, expression)                                                             \
  template <class T>                                                                            \
  MSL_UNCHECKED inline T atomic_##name##_explicit(volatile atomic<T>* at, msl::NotDeduced<T> b, \
                                                  memory_order) {                               \
    msl_atomic_access(at, sizeof(T));                                                           \
    const T a = at->value;                                                                      \
    at->value = (expression);                                                                   \
    return a;                                                                                   \
  }
MSL_FETCH(fetch_add, a + b)
MSL_FETCH(fetch_sub, a - b)
MSL_FETCH(fetch_or, a | b)
MSL_FETCH(fetch_and, a& b)
MSL_FETCH(fetch_xor, a ^ b)
MSL_FETCH(fetch_max, a < b ? b : a)
MSL_FETCH(fetch_min, b < a ? b : a)
MSL_FETCH(exchange, b)
template <class T>
MSL_UNCHECKED inline bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* at, T* expected,
                                                                msl::NotDeduced<T> wanted,
                                                                memory_order, memory_order) {
  msl_atomic_access(at, sizeof(T));
  const bool equal = at->value == *expected;
  if (equal)
    at->value = wanted;
  else
    *expected = at->value;
  return equal;
}
template <class T>
MSL_UNCHECKED inline T atomic_load_explicit(const volatile atomic<T>* at, memory_order) {
  msl_atomic_access(at, sizeof(T));
  return at->value;
}
template <class T>
MSL_UNCHECKED inline void atomic_store_explicit(volatile atomic<T>* at, msl::NotDeduced<T> value,
                                                memory_order) {
  msl_atomic_access(at, sizeof(T));
  at->value = value;
}
#endif

}  // namespace metal
