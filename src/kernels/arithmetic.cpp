#include "kernels/arithmetic.h"

#include <fmt/format.h>

#include "kernels/runtime/device.h"

namespace octavo {

std::string arithmetic_name() {
  const DeviceFacts device = device_facts();
  return device.kind == DeviceKind::kMetal ? device.architecture
                                           : fmt::format("v{}", kArithmeticVersion);
}

}  // namespace octavo
