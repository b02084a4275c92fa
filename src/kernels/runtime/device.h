// device.h - which device computes, and what it allows. Shows no MLX.
//
// The facts are read in one place; what follows from them are functions of the facts, so that
// decisions for a Mac are tested anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/dtype.h"

namespace octavo {

enum class DeviceKind : uint8_t { kCpu, kMetal };

// What is asked for; kAuto is Metal where there is one.
enum class DeviceChoice : uint8_t { kAuto, kCpu, kMetal };

// Reads auto, cpu, metal. Throws SetupError naming `flag`.
DeviceChoice parse_device(std::string_view text, std::string_view flag);

// Of Metal, as it reports them; all empty for the CPU.
struct DeviceFacts {
  DeviceKind kind = DeviceKind::kCpu;
  std::string name = {};           // "Apple M4 Max"
  std::string architecture = {};   // "applegpu_g16s"
  uint64_t memory_bytes = 0;       // of the machine: CPU and GPU share it
  uint64_t working_set_bytes = 0;  // what all buffers together should not exceed
  uint64_t buffer_bytes = 0;       // the longest one
};

// For the whole process. The first call comes before anything else of MLX, which reads its settings
// when it first looks at the GPU. Throws SetupError when this build or machine has no such device.
void use_device(DeviceChoice wanted);

// Of the device in use.
DeviceFacts device_facts();

// Of the MLX library that is loaded, which need not be the one of the build.
std::string mlx_version();

// --wired-limit: keeps up to this many bytes of MLX's buffers resident. Throws SetupError when the
// device cannot.
void wire_memory(uint64_t bytes);

// Throws SetupError, naming the flag, unless `bytes` can be wired on this device.
void check_wired_limit(const DeviceFacts& device, uint64_t bytes);

// What the memory plan may count on; `usable` is what this process may use of the machine.
uint64_t device_memory(const DeviceFacts& device, uint64_t usable);

// "g13" of an M1 is 13; 0 when the name is of another form.
int gpu_generation(std::string_view architecture);

// A sentence for people when another type would suit the device better than `dtype`. Nothing is
// changed by it.
std::optional<std::string> dtype_advice(const DeviceFacts& device, DType dtype);

// "Apple M4 Max (applegpu_g16s), working set 96 GiB of 128 GiB, one buffer up to 72 GiB"; for
// Metal only.
std::string describe(const DeviceFacts& device);

// What is known of equal bits whoever else is asking, on this device.
std::string_view invariance_note(DeviceKind kind);

}  // namespace octavo
