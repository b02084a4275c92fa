// msl_kernel.h (metal_sim) - targets of the rewriter for kernels, function constants and
// threadgroup variables.
#pragma once

namespace msl {

// `constant bool kHasBias [[function_constant(1)]];` is written `constant bool kHasBias =
// FunctionConstant{1, "kHasBias"};`: its value is read when the library is loaded.
struct FunctionConstant {
  int index;
  const char* name;
  template <class T>
  operator T() const {
    T value{};
    msl_function_constant(index, name, &value, sizeof value);
    return value;
  }
};

// Of a kernel that is compiled for one set of function constants.
struct FixedConstant {
  unsigned bits;
  template <class T>
  constexpr operator T() const {
    if constexpr (sizeof(T) == sizeof bits)
      return __builtin_bit_cast(T, bits);
    else
      return (T)bits;
  }
};

#ifndef MSL_LINT

#ifndef MSL_REGISTERS
template <class T>
MSL_UNCHECKED inline T parameter(const ParameterSource& from) {
  if constexpr (std::is_reference_v<T>) {
    return *(std::remove_reference_t<T>*)msl_argument(from.source, from.index, from.name);
  } else if constexpr (std::is_pointer_v<T>) {
    return (T)msl_argument(from.source, from.index, from.name);
  } else {
    uint32_t xyz[3];
    msl_position(from.source, xyz);
    if constexpr (!Shape<T>::kIsVector) {
      return (T)xyz[0];
    } else {
      T value{};
      for (int i = 0; i < Shape<T>::kCount; ++i) value[i] = (typename Shape<T>::Element)xyz[i];
      return value;
    }
  }
}

#endif

template <class... Parameters, size_t... I>
inline void call(void (*function)(Parameters...), const ParameterSource* sources,
                 std::index_sequence<I...>) {
  function(parameter<Parameters>(sources[I])...);
}

template <size_t Count, class... Parameters>
inline void call(void (*function)(Parameters...), const ParameterSource (&sources)[Count]) {
  static_assert(Count == sizeof...(Parameters));
  call(function, sources, std::index_sequence_for<Parameters...>{});
}

#ifndef MSL_REGISTERS
struct Registration {
  Registration(const char* name, void (*run_thread)()) { msl_register_kernel(name, run_thread); }
};

// MSL_REGISTER("name", (function<half>), {source, index, name}, ...)
#define MSL_REGISTER(...) MSL_REGISTER_NUMBERED(__COUNTER__, __VA_ARGS__)
#define MSL_REGISTER_NUMBERED(number, ...) MSL_REGISTER_AS(number, __VA_ARGS__)
#define MSL_REGISTER_AS(number, name, function, ...)             \
  static void msl_run_thread_##number() {                        \
    static const msl::ParameterSource sources[] = {__VA_ARGS__}; \
    msl::call(function, sources);                                \
  }                                                              \
  static msl::Registration msl_registration_##number(name, &msl_run_thread_##number);

// Memory that other threads also access, between barriers.
inline void* shared(void* memory) {
  asm volatile("" : : "r"(memory) : "memory");
  return memory;
}

// `threadgroup float parts[8];` becomes a reference to the simulator's memory.
#define MSL_THREADGROUP_VARIABLE(id, name)                            \
  (*(msl_threadgroup_type_##id*)msl::shared(msl_threadgroup_variable( \
      id, sizeof(msl_threadgroup_type_##id), alignof(msl_threadgroup_type_##id), name)))
#endif

#endif

}  // namespace msl
