// msl_registers.h (metal_sim) - replaces the simulator by instructions of clang's AMD back end,
// which then reports how many registers a kernel needs. Such kernels are compiled, never run.
//
// An operation that the back end lacks is an empty piece of assembly: it takes and returns
// registers, as the operation would.
#pragma once

namespace msl {

template <class T>
inline T in_registers(T value) {
  if constexpr (sizeof(T) % 4 == 0) {
    uint parts[sizeof(T) / 4];
    __builtin_memcpy(parts, &value, sizeof value);
    for (uint& part : parts) asm("" : "+v"(part));
    __builtin_memcpy(&value, parts, sizeof value);
    return value;
  } else {
    ushort parts[sizeof(T) / 2];
    __builtin_memcpy(parts, &value, sizeof value);
    for (ushort& part : parts) {
      uint wide = part;
      asm("" : "+v"(wide));
      part = (ushort)wide;
    }
    __builtin_memcpy(&value, parts, sizeof value);
    return value;
  }
}

inline float in_registers(float a, float b) { return in_registers(a + b); }

// A lane's two elements of a, b and c: one register for both if they have 16 bits.
template <class T>
inline Vector<float, 2> matrix_registers(Vector<T, 2> a, Vector<T, 2> b, Vector<float, 2> c) {
  float x = c.x, y = c.y;
  if constexpr (sizeof(T) == 2) {
    asm("" : "+v"(x), "+v"(y) : "v"(__builtin_bit_cast(uint, a)), "v"(__builtin_bit_cast(uint, b)));
  } else {
    asm("" : "+v"(x), "+v"(y) : "v"(a.x), "v"(a.y), "v"(b.x), "v"(b.y));
  }
  return {x, y};
}

inline uint3 position(Source source) {
  const uint thread_index = __builtin_amdgcn_workitem_id_x();
  const uint3 group = {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
                       __builtin_amdgcn_workgroup_id_z()};
  switch (source) {
    case Source::kThreadgroupInGrid:
      return group;
    case Source::kSimdgroupIndex:
      return (uint)__builtin_amdgcn_readfirstlane((int)(thread_index / 32));
    case Source::kLane:
      return __builtin_amdgcn_mbcnt_lo(~0u, 0);
    case Source::kThreadIndex:
      return thread_index;
    case Source::kThreadInThreadgroup:
      return {thread_index % 32, thread_index / 32, 0};
    default:
      return group * 128 + thread_index;
  }
}

template <class T>
inline T parameter(const ParameterSource& from) {
  using Pointer = __attribute__((address_space(1))) char*;
  const auto* arguments =
      (const __attribute__((address_space(4))) Pointer*)__builtin_amdgcn_kernarg_segment_ptr();
  if constexpr (std::is_reference_v<T>) {
    return *(std::remove_reference_t<T>*)(char*)arguments[from.index];
  } else if constexpr (std::is_pointer_v<T>) {
    return (T)(char*)arguments[from.index];
  } else if constexpr (!Shape<T>::kIsVector) {
    return (T)position(from.source).x;
  } else {
    const uint3 xyz = position(from.source);
    T value{};
    for (int i = 0; i < Shape<T>::kCount; ++i) value[i] = (typename Shape<T>::Element)xyz[i];
    return value;
  }
}

}  // namespace msl

// A kernel of the back end's. Its arguments are addresses in global memory.
#define MSL_REGISTER(...) MSL_REGISTER_NUMBERED(__COUNTER__, __VA_ARGS__)
#define MSL_REGISTER_NUMBERED(number, ...) MSL_REGISTER_AS(number, __VA_ARGS__)
#define MSL_REGISTER_AS(number, name, function, ...)          \
  __attribute__((amdgpu_kernel)) void msl_kernel_##number() { \
    constexpr msl::ParameterSource sources[] = {__VA_ARGS__}; \
    msl::call(function, sources);                             \
  }
#define MSL_THREADGROUP_VARIABLE(id, name)                                           \
  (*({                                                                               \
    static __attribute__((address_space(3),                                          \
                          loader_uninitialized)) msl_threadgroup_type_##id variable; \
    (msl_threadgroup_type_##id*)&variable;                                           \
  }))
