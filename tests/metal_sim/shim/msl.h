// msl.h (metal_sim) - replaces metal_stdlib, so that clang compiles a rewritten kernel for this
// machine's CPU.
//
// With MSL_LINT it is only used to check types, with real address spaces. build_instance.py
// precompiles it once.
#pragma once

#include "runtime.h"

#include <limits>
#include <type_traits>
#include <utility>

#define kernel
#define thread
#define METAL_FUNC inline
#ifdef MSL_LINT
#define device __attribute__((address_space(1)))
#define constant const __attribute__((address_space(2)))
#define threadgroup __attribute__((address_space(3)))
#else
// There is one address space: overloads that differ only in it are redefinitions here.
#define device
#define constant const
#define threadgroup
#endif
#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))
#define M_PI_F 3.14159265358979323846f
#define M_PI_2_F 1.57079632679489661923f
#define M_LOG2E_F 1.44269504088896340736f
#define M_LN2_F 0.693147180559945309417f
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define HALF_MAX ((half)65504.0f)
#define INT_MAX 0x7fffffff
#define UINT_MAX 0xffffffffu

// clang-format off: each depends on the previous ones
#include "msl_types.h"
#ifdef MSL_REGISTERS
#include "msl_registers.h"
#endif
#include "msl_math.h"
#include "msl_simd.h"
#include "msl_atomic.h"
#include "msl_matrix.h"
#include "msl_kernel.h"
// clang-format on

using metal::as_type;
