// simulator.h (metal_sim) - runs our Metal kernels on the CPU and detects faults.
//
//   SimulatedMetal metal;                       // kernels on the CPU device now take the Metal
//   path mx::array y = norm(x, spec); y.eval();
//   metal.counts()["norm_rows"].arguments["x"].load_bytes
//
// Faults: accesses outside an argument or a threadgroup variable (to the byte), data races (a
// missing barrier), reads of uninitialised threadgroup memory, misaligned accesses, barriers and
// simd operations that not all threads reach, more than 32 KiB of threadgroup memory, writes to
// inputs, source that is not valid MSL.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/metal/simulator.h"
#include "metal_sim/library.h"
#include "metal_sim/machine.h"

namespace octavo::metal_sim {

// On a Mac the same tests run on the GPU (tests/metal_gpu), where this is false: of KernelCounts,
// only launches are counted there.
inline constexpr bool kCountsAccesses = true;

// Totals over all launches of one kernel.
struct KernelCounts {
  uint64_t launches = 0;
  uint64_t threadgroups = 0;
  uint64_t threads = 0;
  uint64_t barriers = 0;         // threadgroup barriers
  uint64_t simd_operations = 0;  // per simdgroup: shuffles, matrix products, ...
  // One per product of fma() and dot(), and 512 per product of simdgroup matrices. A separate
  // product and sum are not counted.
  uint64_t multiply_adds = 0;
  size_t threadgroup_bytes = 0;  // maximum over the launches
  std::map<std::string, AccessCounts> arguments = {};
  // Only with MachineOptions::costs.
  OperationCosts operations = {};
  MemoryCosts threadgroup_loads = {};
  MemoryCosts threadgroup_stores = {};
};

// A launch of Metal source as text.
struct TextArgument {
  int index;
  std::string name;
  metal::ParameterKind kind;
  std::byte* data = nullptr;  // null: omitted, or threadgroup memory
  size_t bytes = 0;
};
struct TextLaunch {
  std::string kernel;    // its name, in messages and in counts()
  std::string instance;  // the function's name in `text`
  std::string text;
  std::map<int, uint32_t> constants = {};
  std::vector<TextArgument> arguments = {};
  metal::Size3 groups = {};
  metal::Size3 threads = {};
  std::optional<CostBuild> cost_build = std::nullopt;  // without constants; default: as our kernels
};

// One launch at a time; any thread.
class MetalSimulator : public metal::Simulator {
 public:
  explicit MetalSimulator(MachineOptions options = {}) : options_(options) {}

  // Both throw std::runtime_error with kernel, source location, threadgroup and thread of the first
  // fault. Outputs are then unchanged.
  void run(const metal::BoundLaunch& launch) override;
  void run_text(const TextLaunch& launch);

  // By kernel.
  std::map<std::string, KernelCounts> counts() const;
  void reset();

 private:
  mutable std::mutex mutex_;
  MachineOptions options_;
  std::map<std::string, KernelCounts> counts_;
};

// During its lifetime, kernel primitives on the CPU device take the Metal path in a MetalSimulator.
// An exception must not leave MLX's thread, so a fault is stored; the destructor fails the test
// unless take_fault() has returned it.
class SimulatedMetal : private metal::Simulator {
 public:
  explicit SimulatedMetal(MachineOptions options = {});
  ~SimulatedMetal() override;
  SimulatedMetal(const SimulatedMetal&) = delete;
  SimulatedMetal& operator=(const SimulatedMetal&) = delete;

  std::map<std::string, KernelCounts> counts() const { return simulator_.counts(); }
  void reset() { simulator_.reset(); }
  // The first fault since the last call.
  std::optional<std::string> take_fault();

 private:
  void run(const metal::BoundLaunch& launch) override;

  MetalSimulator simulator_;
  std::mutex mutex_;
  std::optional<std::string> fault_;
};

}  // namespace octavo::metal_sim
