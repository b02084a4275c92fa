#include "kernels/runtime/device_buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/units.h"

namespace octavo {
namespace {

size_t bytes_of(const mx::Shape& shape, mx::Dtype dtype) {
  size_t bytes = mx::size_of(dtype);
  for (auto dim : shape) bytes *= static_cast<size_t>(dim);
  return bytes;
}

}  // namespace

#ifdef __APPLE__

// Metal kernels need memory from MLX's allocator, which is already page-aligned. With a deleter of
// our own it counts as foreign, and MLX never donates foreign memory.
mx::array make_device_buffer(mx::Shape shape, mx::Dtype dtype) {
  const size_t bytes = bytes_of(shape, dtype);
  mx::allocator::Allocator& allocator = mx::allocator::allocator();
  try {
    const mx::allocator::Buffer buffer = allocator.malloc(bytes);
    auto give_back = [&allocator](mx::allocator::Buffer memory) { allocator.free(memory); };
    return mx::array(mx::allocator::Data(buffer, std::move(give_back)), std::move(shape), dtype);
  } catch (const std::runtime_error& error) {
    throw SetupError(fmt::format("cannot reserve {} of memory for weights or pages: {}",
                                 format_bytes(bytes), error.what()));
  }
}

#else

// MLX's CPU buffers store their byte count in the 8 bytes before the data. Giving those 8 bytes a
// page of their own keeps the data page-aligned.
mx::array make_device_buffer(mx::Shape shape, mx::Dtype dtype) {
  constexpr size_t kHeaderPage = 4096;
  const size_t bytes = bytes_of(shape, dtype);
  const size_t mapped = bytes + kHeaderPage;
  void* base = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    throw SetupError(
        fmt::format("cannot reserve {} of memory for weights or pages", format_bytes(bytes)));
  }
#ifdef MADV_HUGEPAGE
  // Kernels read these sequentially: large pages avoid most address translations.
  constexpr size_t kWorthwhile = size_t{8} << 20;
  if (mapped >= kWorthwhile) ::madvise(base, mapped, MADV_HUGEPAGE);
#endif
  auto* data = static_cast<std::byte*>(base) + kHeaderPage;
  auto* header = reinterpret_cast<size_t*>(data) - 1;
  *header = bytes;
  auto unmap = [base, mapped](mx::allocator::Buffer) { ::munmap(base, mapped); };
  return mx::array(mx::allocator::Data(mx::allocator::Buffer(header), std::move(unmap)),
                   std::move(shape), dtype);
}

#endif

void touch_device_buffer(mx::array& buffer) {
  constexpr int64_t kStride = 4096;
  constexpr int64_t kPiece = int64_t{32} << 20;
  auto* bytes = buffer.data<std::byte>();
  const auto size = static_cast<int64_t>(buffer.nbytes());
  compute_pool().parallel_for((size + kPiece - 1) / kPiece, 1, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin * kPiece; at < std::min(end * kPiece, size); at += kStride)
      *reinterpret_cast<volatile std::byte*>(bytes + at) = std::byte{0};
  });
}

}  // namespace octavo
