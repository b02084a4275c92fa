#include "kernels/runtime/device.h"

#include <fmt/format.h>
#include <mlx/device.h>
#include <mlx/memory.h>
#include <mlx/version.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/units.h"

namespace octavo {
namespace {

namespace mx = mlx::core;

// GPUs before these convert bfloat16 to float and back for every operation.
constexpr int kFirstWithBfloat = 15;  // M3

template <typename T>
T fact(const char* name) {
  const auto& facts = mx::device_info(mx::Device(mx::Device::gpu));
  const auto found = facts.find(name);
  return found == facts.end() ? T{} : std::get<T>(found->second);
}

// MLX ends a command buffer once its operations have used 40 to 50 million elements of distinct
// arrays. This bounds the memory that a buffer keeps alive, but weights and pages stay allocated
// anyway, and one layer of a large model has hundreds of millions of bytes: each operation would
// get its own buffer. With this value (times 2^20) the other limit is reached first: 40 to 50
// operations by MLX's default. A step has hundreds, and each buffer costs the host time;
// vllm-metal measured a plateau at 2000. MLX reads both variables once, when it creates its Metal
// device.
constexpr std::array<std::pair<const char*, const char*>, 2> kBufferLimits = {
    {{"MLX_MAX_MB_PER_BUFFER", "4096"}, {"MLX_MAX_OPS_PER_BUFFER", "2000"}}};

}  // namespace

DeviceChoice parse_device(std::string_view text, std::string_view flag) {
  if (text == "auto") return DeviceChoice::kAuto;
  if (text == "cpu") return DeviceChoice::kCpu;
  if (text == "metal") return DeviceChoice::kMetal;
  throw SetupError(fmt::format("{}: \"{}\" is not one of auto, cpu, metal", flag, text));
}

void use_device(DeviceChoice wanted) {
  for (const auto& [name, value] : kBufferLimits) setenv(name, value, 0);  // keeps the user's value
  const bool has_metal = mx::is_available(mx::Device(mx::Device::gpu));
  if (wanted == DeviceChoice::kMetal && !has_metal) {
#ifdef __APPLE__
    throw SetupError(
        "--device metal: no GPU is available (virtual machines and sandboxes may have none); use "
        "--device cpu");
#else
    throw SetupError("--device metal: this build has no Metal; use --device cpu, or run on a Mac");
#endif
  }
  const bool on_gpu = has_metal && wanted != DeviceChoice::kCpu;
  mx::set_default_device(on_gpu ? mx::Device::gpu : mx::Device::cpu);
}

std::string mlx_version() { return mx::version(); }

DeviceFacts device_facts() {
  if (mx::default_device() == mx::Device::cpu) return {};
  return {.kind = DeviceKind::kMetal,
          .name = fact<std::string>("device_name"),
          .architecture = fact<std::string>("architecture"),
          .memory_bytes = fact<size_t>("memory_size"),
          .working_set_bytes = fact<size_t>("max_recommended_working_set_size"),
          .buffer_bytes = fact<size_t>("max_buffer_length")};
}

void wire_memory(uint64_t bytes) {
  check_wired_limit(device_facts(), bytes);
  mx::set_wired_limit(bytes);
}

void check_wired_limit(const DeviceFacts& device, uint64_t bytes) {
  if (device.kind != DeviceKind::kMetal) {
    throw SetupError("--wired-limit: only Metal memory can be wired, but the device is the CPU");
  }
  if (bytes > device.working_set_bytes) {
    throw SetupError(
        fmt::format("--wired-limit {}: this device allows {}; use --wired-limit {}MiB or less",
                    format_bytes(bytes), format_bytes(device.working_set_bytes),
                    device.working_set_bytes >> 20));
  }
}

uint64_t device_memory(const DeviceFacts& device, uint64_t usable) {
  if (device.kind != DeviceKind::kMetal || device.working_set_bytes == 0) return usable;
  return std::min(device.working_set_bytes, usable);
}

int gpu_generation(std::string_view architecture) {
  const size_t mark = architecture.rfind("_g");
  if (mark == std::string_view::npos) return 0;
  int generation = 0;
  for (const char letter : architecture.substr(mark + 2)) {
    if (std::isdigit(static_cast<unsigned char>(letter)) == 0) break;
    generation = std::min(generation * 10 + (letter - '0'), 1000);
  }
  return generation;
}

std::optional<std::string> dtype_advice(const DeviceFacts& device, DType dtype) {
  if (device.kind != DeviceKind::kMetal || dtype != DType::kBFloat16) return std::nullopt;
  const int generation = gpu_generation(device.architecture);
  if (generation == 0 || generation >= kFirstWithBfloat) return std::nullopt;
  return fmt::format(
      "{} has no bfloat16 arithmetic and converts each number to float32 and back: --dtype float16 "
      "is faster here, with a smaller range of numbers",
      device.name);
}

std::string describe(const DeviceFacts& device) {
  return fmt::format("{} ({}), working set {} of {}, one buffer up to {}", device.name,
                     device.architecture, format_bytes(device.working_set_bytes),
                     format_bytes(device.memory_bytes), format_bytes(device.buffer_bytes));
}

std::string_view invariance_note(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return "output is bit-identical regardless of load: tested";
  return "output is bit-identical regardless of load: by construction, tested on the CPU and with "
         "simulated Metal kernels, not yet verified on a GPU";
}

}  // namespace octavo
