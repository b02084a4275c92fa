#include "kernels/metal/kernel_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace octavo::metal {

const KernelSource& find_kernel(std::string_view name) {
  const auto kernels = kernel_sources();
  const auto found = std::ranges::find(kernels, name, &KernelSource::name);
  OCTAVO_CHECK(found != kernels.end());
  return *found;
}

std::string instance_name(std::string_view kernel, std::span<const std::string> types) {
  if (types.empty()) return std::string(kernel);
  return fmt::format("{}_{}", kernel, fmt::join(types, "_"));
}

std::string instance_text(const KernelSource& kernel, std::span<const std::string> types) {
  if (types.empty()) return std::string(kernel.text);
  const std::string function = fmt::format("{}<{}>", kernel.name, fmt::join(types, ", "));
  return fmt::format("{}\ntemplate [[host_name(\"{}\")]] [[kernel]] decltype({}) {};\n",
                     kernel.text, instance_name(kernel.name, types), function, function);
}

}  // namespace octavo::metal
