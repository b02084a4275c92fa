#include "kernels/cpu/scratch.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <new>

namespace octavo::cpu {
namespace {

struct Free {
  void operator()(std::byte* p) const { std::free(p); }
};

struct Buffer {
  std::unique_ptr<std::byte, Free> data;
  int64_t bytes = 0;
};

}  // namespace

std::byte* scratch(Scratch use, int64_t bytes) {
  constexpr int64_t kAlign = 64;
  thread_local std::array<Buffer, static_cast<size_t>(Scratch::kCount)> buffers;
  Buffer& buffer = buffers[static_cast<size_t>(use)];
  if (bytes > buffer.bytes) {
    const int64_t rounded = (bytes + kAlign - 1) / kAlign * kAlign;
    buffer.data.reset();
    buffer.bytes = 0;
    void* memory = std::aligned_alloc(kAlign, static_cast<size_t>(rounded));
    if (memory == nullptr) throw std::bad_alloc();
    buffer.data.reset(static_cast<std::byte*>(memory));
    buffer.bytes = rounded;
  }
  return buffer.data.get();
}

}  // namespace octavo::cpu
