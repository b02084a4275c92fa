#include "kernels/primitive.h"

#include <fmt/format.h>

#include "base/error.h"

namespace octavo {

void KernelPrimitive::eval_gpu(const std::vector<mx::array>&, std::vector<mx::array>&) {
  throw SetupError(fmt::format("{}: no Metal kernel yet; run on the CPU device", name()));
}

mx::Stream kernel_stream() { return mx::default_stream(mx::default_device()); }

void allocate(mx::array& out) { out.set_data(mx::allocator::malloc(out.nbytes())); }

void require_contiguous(const mx::array& array) { OCTAVO_CHECK(array.flags().row_contiguous); }

}  // namespace octavo
