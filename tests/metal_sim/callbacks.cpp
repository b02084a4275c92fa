// The C functions that kernels call: those of the shim (shim/runtime.h), and the hooks that clang's
// sanitizers insert at accesses and arithmetic. They are resolved by name when a kernel's library
// is loaded.
#include "metal_sim/callbacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "metal_sim/machine.h"

namespace octavo::metal_sim {
namespace {

Loading* current_loading = nullptr;

void check_access(const void* address, unsigned bytes, bool is_write, const void* instruction) {
  machine().access(reinterpret_cast<uintptr_t>(address), bytes, is_write, instruction);
}

void check_range(const void* address, size_t bytes, bool is_write, const void* instruction) {
  constexpr size_t kStep = 16;
  const auto* at = static_cast<const char*>(address);
  for (size_t i = 0; i < bytes; i += kStep)
    check_access(at + i, static_cast<unsigned>(std::min(kStep, bytes - i)), is_write, instruction);
}

}  // namespace

LoadingScope::LoadingScope(Loading& loading) { current_loading = &loading; }
LoadingScope::~LoadingScope() { current_loading = nullptr; }

}  // namespace octavo::metal_sim

using octavo::metal_sim::check_access;
using octavo::metal_sim::check_range;
using octavo::metal_sim::current_loading;
using octavo::metal_sim::machine;

extern "C" {

uint64_t msl_multiply_adds = 0;

msl::Exchange* msl_exchange(const void* value, unsigned size, const char* operation,
                            const char* file, int line) {
  return machine().exchange(value, size, operation, file, line);
}
void msl_barrier(bool of_simdgroup, int flags, const char* file, int line) {
  machine().barrier(of_simdgroup, flags, file, line);
}
void* msl_threadgroup_variable(int id, size_t size, size_t alignment, const char* name) {
  return machine().threadgroup_variable(id, size, alignment, name);
}
void* msl_argument(msl::Source source, int index, const char* name) {
  return machine().argument(source, index, name);
}
void msl_position(msl::Source source, uint32_t* xyz) { machine().position(source, xyz); }
uint32_t msl_lane() { return machine().lane(); }
void msl_limit_threads(int most) { machine().limit_threads(most); }
void msl_fail(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  machine().fail(text, "", nullptr);
}
void msl_atomic_access(const volatile void* address, unsigned size) {
  machine().atomic_access(reinterpret_cast<uintptr_t>(address), size, __builtin_return_address(0));
}
void msl_register_kernel(const char* name, void (*run_thread)()) {
  if (current_loading != nullptr) current_loading->kernels[name] = run_thread;
}
void msl_function_constant(int index, const char* name, void* value, unsigned size) {
  if (current_loading == nullptr) return;
  const auto found = current_loading->constants.find(index);
  if (found == current_loading->constants.end())
    current_loading->missing_constant = name;
  else
    std::memcpy(value, &found->second, std::min<size_t>(size, sizeof found->second));
}

// The thread sanitizer's hooks.
#define OCTAVO_HOOKS(bytes)                                      \
  void __tsan_read##bytes(void* at) {                            \
    check_access(at, bytes, false, __builtin_return_address(0)); \
  }                                                              \
  void __tsan_write##bytes(void* at) {                           \
    check_access(at, bytes, true, __builtin_return_address(0));  \
  }                                                              \
  void __tsan_unaligned_read##bytes(void* at) {                  \
    check_access(at, bytes, false, __builtin_return_address(0)); \
  }                                                              \
  void __tsan_unaligned_write##bytes(void* at) {                 \
    check_access(at, bytes, true, __builtin_return_address(0));  \
  }
OCTAVO_HOOKS(1)
OCTAVO_HOOKS(2)
OCTAVO_HOOKS(4)
OCTAVO_HOOKS(8)
OCTAVO_HOOKS(16)
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  check_range(from, bytes, false, __builtin_return_address(0));
  check_range(to, bytes, true, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  check_range(from, bytes, false, __builtin_return_address(0));
  check_range(to, bytes, true, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
void* __tsan_memset(void* to, int value, size_t bytes) {
  check_range(to, bytes, true, __builtin_return_address(0));
  return std::memset(to, value, bytes);
}

// The hooks of the undefined-behaviour sanitizer. Their argument starts with the source location.
struct SourcePlace {
  const char* file;
  uint32_t line;
  uint32_t column;
};
#define OCTAVO_UNDEFINED(hook, what)                                        \
  void __ubsan_handle_##hook(const SourcePlace* place, ...) {               \
    if (!machine().is_running()) return;                                    \
    const char* slash = std::strrchr(place->file, '/');                     \
    const char* file = slash == nullptr ? place->file : slash + 1;          \
    machine().fail(what, fmt::format("{}:{}", file, place->line), nullptr); \
  }
OCTAVO_UNDEFINED(type_mismatch_v1, "misaligned access")
OCTAVO_UNDEFINED(out_of_bounds, "array index out of bounds")
OCTAVO_UNDEFINED(shift_out_of_bounds, "shift by more than the width")
OCTAVO_UNDEFINED(divrem_overflow, "division by zero")
OCTAVO_UNDEFINED(add_overflow, "signed overflow of +")
OCTAVO_UNDEFINED(sub_overflow, "signed overflow of -")
OCTAVO_UNDEFINED(mul_overflow, "signed overflow of *")
OCTAVO_UNDEFINED(negate_overflow, "signed overflow of -")
}
