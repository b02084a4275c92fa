// Replaces MLX's header of this name, whose complex numbers and functions of bfloat the shim cannot
// compile. Only what its matrix products and attention use.
#pragma once

#include "mlx/backend/metal/kernels/bf16.h"
#include "mlx/backend/metal/kernels/defines.h"

typedef half float16_t;

template <typename T>
struct Limits {
  static constexpr constant T finite_min = metal::numeric_limits<T>::lowest();
};

template <bool condition, typename T, typename U>
struct ConditionalType {
  using type = metal::conditional_t<condition, T, U>;
};

// Only declared, for kernels that are not simulated.
struct complex64_t {
  complex64_t(float, float);
  float real;
  float imag;
};
float quad_sum(float);
// Offsets of batched products, which are not simulated.
template <typename Index = int64_t>
Index elem_to_loc(uint, constant const int*, constant const int64_t*, int);
ulong2 elem_to_loc_broadcast(uint, constant const int*, constant const int64_t*,
                             constant const int64_t*, int);
ulong3 elem_to_loc_broadcast(uint, constant const int*, constant const int64_t*,
                             constant const int64_t*, constant const int64_t*, int);
