// device.h - which device computes, and what it allows. Shows no MLX.
//
// Device facts are read in one place; decisions are functions of the facts, so that decisions for a
// Mac can be tested on any machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace octavo {

enum class DeviceKind : uint8_t { kCpu, kMetal };

// The requested device; kAuto is Metal if available.
enum class DeviceChoice : uint8_t { kAuto, kCpu, kMetal };

// Parses auto, cpu or metal. Throws SetupError naming `flag`.
DeviceChoice parse_device(std::string_view text, std::string_view flag);

// As Metal reports them; all empty for the CPU.
struct DeviceFacts {
  DeviceKind kind = DeviceKind::kCpu;
  std::string name = {};           // "Apple M4 Max"
  std::string architecture = {};   // "applegpu_g16s"
  uint64_t memory_bytes = 0;       // of the machine; CPU and GPU share it
  uint64_t working_set_bytes = 0;  // recommended limit of all buffers together
  uint64_t buffer_bytes = 0;       // limit of one buffer
};

// For the whole process. The first call must precede any other use of MLX, which reads its settings
// when it first accesses the GPU. Throws SetupError if this build or machine has no such device.
void use_device(DeviceChoice wanted);

// Facts of the device in use.
DeviceFacts device_facts();

// Version of the loaded MLX library, which may differ from the one of the build.
std::string mlx_version();

// --wired-limit: keeps up to this many bytes of MLX's buffers resident. Throws SetupError if the
// device does not support it.
void wire_memory(uint64_t bytes);

// Throws SetupError, naming the flag, unless `bytes` can be wired on this device.
void check_wired_limit(const DeviceFacts& device, uint64_t bytes);

// Memory available to the memory plan; `usable` is the machine's memory that this process may use.
uint64_t device_memory(const DeviceFacts& device, uint64_t usable);

// "g13" (M1) gives 13; 0 if the name has another form.
int gpu_generation(std::string_view architecture);

// A sentence for users if another type would suit the device better than `dtype`. Advice only.
std::optional<std::string> dtype_advice(const DeviceFacts& device, DType dtype);

// "Apple M4 Max (applegpu_g16s), working set 96 GiB of 128 GiB, one buffer up to 72 GiB"; for
// Metal only.
std::string describe(const DeviceFacts& device);

// Whether output is bit-identical regardless of load on this device, as a sentence.
std::string_view invariance_note(DeviceKind kind);

}  // namespace octavo
