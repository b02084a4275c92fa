#include "kernels/runtime/weight_buffer.h"

#include "kernels/runtime/device_buffer.h"

#ifndef __APPLE__
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#endif

namespace octavo {

#ifdef __APPLE__

mx::array make_weight_buffer(mx::Shape shape, mx::Dtype dtype) {
  return make_device_buffer(std::move(shape), dtype);
}

#else

namespace {

constexpr size_t kSmallPage = 4096;
constexpr size_t kLargePage = size_t{2} << 20;
constexpr size_t kLine = 64;
// Address space that weights share. Only what is touched becomes memory.
constexpr size_t kRegionBytes = size_t{256} << 20;

size_t rounded_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Memory that buffers take from its start; unmapped with the last of them.
class Region {
 public:
  explicit Region(size_t bytes) : mapped_(rounded_up(bytes, kLargePage) + kLargePage) {
    base_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base_ == MAP_FAILED) {
      throw SetupError(fmt::format("cannot reserve {} of memory for weights", format_bytes(bytes)));
    }
    const auto address = reinterpret_cast<uintptr_t>(base_);
    next_ = static_cast<std::byte*>(base_) + (rounded_up(address, kLargePage) - address);
#ifdef MADV_HUGEPAGE
    ::madvise(next_, end() - next_, MADV_HUGEPAGE);
#endif
  }
  ~Region() { ::munmap(base_, mapped_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  // MLX stores the number of bytes in the 8 bytes before the data. nullptr if there is no space.
  std::byte* take(size_t bytes) {
    if (static_cast<size_t>(end() - next_) < bytes + kLine) return nullptr;
    std::byte* data = next_ + kLine;
    next_ = data + rounded_up(bytes, kLine);
    return data;
  }

 private:
  std::byte* end() const { return static_cast<std::byte*>(base_) + mapped_; }

  size_t mapped_;
  void* base_;
  std::byte* next_;
};

// The memory of a buffer within a region. The last page is shared with the next buffer.
void give_back(std::byte* data, size_t bytes) {
  const auto begin = rounded_up(reinterpret_cast<uintptr_t>(data), kSmallPage);
  const auto end = (reinterpret_cast<uintptr_t>(data) + bytes) / kSmallPage * kSmallPage;
  if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

struct Taken {
  std::shared_ptr<Region> region;
  std::byte* data;
};

Taken take(size_t bytes) {
  static std::mutex mutex;
  static std::shared_ptr<Region> current;
  const std::lock_guard lock(mutex);
  std::byte* data = current ? current->take(bytes) : nullptr;
  if (data == nullptr) {
    current = std::make_shared<Region>(std::max(bytes + kLine, kRegionBytes));
    data = current->take(bytes);
  }
  return {current, data};
}

}  // namespace

mx::array make_weight_buffer(mx::Shape shape, mx::Dtype dtype) {
  size_t bytes = mx::size_of(dtype);
  for (auto dim : shape) bytes *= static_cast<size_t>(dim);
  Taken taken = take(bytes);
  auto* header = reinterpret_cast<size_t*>(taken.data) - 1;
  *header = bytes;
  auto free = [taken, bytes](mx::allocator::Buffer) { give_back(taken.data, bytes); };
  return mx::array(mx::allocator::Data(mx::allocator::Buffer(header), std::move(free)),
                   std::move(shape), dtype);
}

#endif

}  // namespace octavo
