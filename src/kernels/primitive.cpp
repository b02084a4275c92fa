#include "kernels/primitive.h"

#include <fmt/format.h>

#include <atomic>

#include "base/error.h"
#include "kernels/kernel_time.h"

namespace octavo {
namespace {

std::atomic<int64_t> kernel_time{0};  // nanoseconds

}  // namespace

int64_t kernel_nanoseconds() { return kernel_time.load(std::memory_order_relaxed); }

void add_kernel_time(std::chrono::steady_clock::duration time) {
  const auto spent = std::chrono::duration_cast<std::chrono::nanoseconds>(time);
  kernel_time.fetch_add(spent.count(), std::memory_order_relaxed);
}

void KernelPrimitive::eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) {
  throw SetupError(fmt::format("{}: no Metal kernel yet; run on the CPU device", name()));
}

mx::Stream kernel_stream() { return mx::default_stream(mx::default_device()); }

void allocate(mx::array& out) { out.set_data(mx::allocator::malloc(out.nbytes())); }

void require_contiguous(const mx::array& array) { OCTAVO_CHECK(array.flags().row_contiguous); }

}  // namespace octavo
