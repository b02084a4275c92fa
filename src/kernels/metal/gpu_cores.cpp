#include "kernels/metal/gpu_cores.h"

#include <mlx/device.h>

#include <string>

namespace octavo::metal {

int32_t cores_of(std::string_view architecture) {
  constexpr int32_t kUnknown = 40;
  if (!architecture.starts_with("applegpu_")) return kUnknown;
  switch (architecture.back()) {
    case 'p':  // phones
      return 6;
    case 'g':  // base chips and Pro
      return 16;
    case 'd':  // Ultra
      return 80;
    default:  // Max
      return kUnknown;
  }
}

int32_t gpu_cores() {
  static const int32_t cores = [] {
    namespace mx = mlx::core;
    const mx::Device gpu(mx::Device::gpu);
    if (!mx::is_available(gpu)) return cores_of("");
    const auto& facts = mx::device_info(gpu);
    const auto found = facts.find("architecture");
    return cores_of(found == facts.end() ? "" : std::get<std::string>(found->second));
  }();
  return cores;
}

}  // namespace octavo::metal
