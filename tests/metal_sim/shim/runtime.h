// runtime.h (metal_sim) - the interface between a compiled kernel and the simulator. Both sides
// include it; the kernel side is C++17 compiled by clang, so only plain types are used.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msl {

constexpr int kSimdLanes = 32;
constexpr int kMostValueBytes = 64;  // one lane's value in a simd operation

// The source of a kernel parameter's value.
enum class Source : int {
  kBuffer,
  kThreadgroupMemory,
  kThreadInThreadgroup,
  kThreadgroupInGrid,
  kThreadInGrid,
  kThreadsPerThreadgroup,
  kThreadgroupsPerGrid,
  kThreadsPerGrid,
  kThreadIndex,
  kSimdgroupIndex,
  kLane,
  kSimdgroupsPerThreadgroup,
  kSimdWidth,
};

struct ParameterSource {
  Source source;
  int index;  // [[buffer(index)]] or [[threadgroup(index)]]
  const char* name;
};

// The values of a simdgroup's lanes in one simd operation.
struct Exchange {
  uint32_t active;  // participating lanes
  bool reduced;     // `result` is set, by the first lane that continues
  alignas(16) unsigned char result[kMostValueBytes];
  alignas(16) unsigned char values[kSimdLanes][kMostValueBytes];
};

// mem_flags, as bits
constexpr int kOrdersDevice = 1;
constexpr int kOrdersThreadgroup = 2;

}  // namespace msl

// Operations between lanes, in a kernel whose costs are counted: they are functions of their values
// that all lanes call together, so that the compiler may move other work across them, as it may on a
// GPU.
#ifdef MSL_COSTS
#define MSL_TOGETHER __attribute__((convergent))  // the compiler must not add conditions
#define MSL_LANE_OPERATION __attribute__((const, convergent, noinline))
#define MSL_OWN_MEMORY __attribute__((malloc))
#define MSL_PER_THREAD __attribute__((const))
#else
#define MSL_TOGETHER
#define MSL_LANE_OPERATION
#define MSL_OWN_MEMORY
#define MSL_PER_THREAD
#endif

extern "C" {
// Waits until every lane of the simdgroup reaches the same location, then returns the values of all
// lanes.
MSL_TOGETHER msl::Exchange* msl_exchange(const void* value, unsigned size, const char* operation,
                                         const char* file, int line);
MSL_TOGETHER void msl_barrier(bool of_simdgroup, int flags, const char* file, int line);
MSL_OWN_MEMORY void* msl_threadgroup_variable(int id, size_t size, size_t alignment,
                                              const char* name);
void* msl_argument(msl::Source source, int index, const char* name);
void msl_position(msl::Source source, uint32_t* xyz);
MSL_PER_THREAD uint32_t msl_lane();
void msl_limit_threads(int most);
[[noreturn]] void msl_fail(const char* format, ...);
void msl_atomic_access(const volatile void* address, unsigned size);
// Called while a library is loaded:
void msl_register_kernel(const char* name, void (*run_thread)());
void msl_function_constant(int index, const char* name, void* value, unsigned size);
// Explicit multiply-adds of a kernel, counted by the shim.
extern uint64_t msl_multiply_adds;
}
