#include "kernels/arithmetic.h"

#include <fmt/format.h>

#include "kernels/metal/linear.h"
#include "kernels/metal/paged_attention.h"
#include "kernels/runtime/device.h"

namespace octavo {

std::string arithmetic_name() {
  const DeviceFacts device = device_facts();
  if (device.kind != DeviceKind::kMetal) return fmt::format("v{}", kArithmeticVersion);
  return device.architecture + (metal::has_vector_products() ? "" : "-matrix-products") +
         (metal::uses_vector_decode() ? "" : "-matrix-attention");
}

}  // namespace octavo
