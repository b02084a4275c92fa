#include "kernels/runtime/primitive.h"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "kernels/metal/simulator.h"
#include "kernels/runtime/kernel_time.h"

namespace octavo {
namespace {

std::atomic<int64_t> kernel_time{0};  // nanoseconds

}  // namespace

int64_t kernel_nanoseconds() { return kernel_time.load(std::memory_order_relaxed); }

void add_kernel_time(std::chrono::steady_clock::duration time) {
  const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(time);
  kernel_time.fetch_add(spent.count(), std::memory_order_relaxed);
}

void KernelPrimitive::eval_cpu(const std::vector<mx::array>& inputs,
                               std::vector<mx::array>& outputs) {
  metal::Simulator* simulator = metal::simulator();
  if (simulator == nullptr) return run_cpu(inputs, outputs);
  const auto start = std::chrono::steady_clock::now();
  eval_gpu(inputs, outputs);
  simulator->encoded(std::chrono::steady_clock::now() - start);
}

void KernelPrimitive::eval_gpu(const std::vector<mx::array>& inputs,
                               std::vector<mx::array>& outputs) {
  metal::Encoder encoder(stream());
  run_metal(inputs, outputs, encoder);
}

mx::Stream kernel_stream() { return mx::default_stream(mx::default_device()); }

bool uses_metal() {
  return mx::default_device() == mx::Device::gpu || metal::simulator() != nullptr;
}

// Whether kernels on a GPU use the array, or would if there were one.
bool is_for_gpu(const mx::array& array) {
  if (metal::simulator() != nullptr) return !metal::simulator()->executes();
  return array.has_primitive() && array.primitive().device() == mx::Device::gpu;
}

// MLX's CPU buffers start 8 bytes after an address from malloc, so nearly every row would straddle
// cache lines. Allocates one extra line and starts the array at the first whole one.
void allocate(mx::array& out) {
  if (is_for_gpu(out)) return out.set_data(mx::allocator::malloc(out.nbytes()));
  constexpr size_t kLine = 64;
  const size_t item = out.itemsize();
  mx::array memory({static_cast<int>(out.size() + kLine / item)}, out.dtype(), nullptr, {});
  memory.set_data(mx::allocator::malloc(out.nbytes() + kLine));
  // NaN, so that numbers a kernel fails to write cannot be right by chance.
  if (metal::simulator() != nullptr) std::memset(memory.data<void>(), 0xFF, memory.nbytes());
  const auto address = reinterpret_cast<uintptr_t>(memory.data<void>());
  const size_t skipped = (kLine - address % kLine) % kLine / item;
  mx::array::Flags flags = memory.flags();
  flags.row_contiguous = true;
  flags.col_contiguous = out.size() <= 1;
  out.copy_shared_buffer(memory, out.strides(), flags, out.size(), static_cast<int64_t>(skipped));
}

void require_contiguous(const mx::array& array) { OCTAVO_CHECK(array.flags().row_contiguous); }

}  // namespace octavo
