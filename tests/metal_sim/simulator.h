// simulator.h (metal_sim) - runs our Metal kernels on the CPU and finds what they do wrong.
//
//   SimulatedMetal metal;                       // kernels on the CPU device now go Metal's way
//   mx::array y = norm(x, spec);
//   y.eval();
//   metal.counts()["norm_rows"].arguments["x"].load_bytes
//
// Wrong: accesses outside of an argument or a threadgroup variable (to the byte), data races (a
// missing barrier), reads of threadgroup memory that nobody wrote, misaligned accesses, barriers
// and simd operations that not all threads reach, more than 32 KiB of threadgroup memory, writes to
// inputs, source that is not MSL.
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

// On a Mac the same tests run on the GPU (tests/metal_gpu), where this is false: launches are known
// there, and nothing else of KernelCounts.
inline constexpr bool kCountsAccesses = true;

// Of all launches of one kernel.
struct KernelCounts {
  uint64_t launches = 0;
  uint64_t threadgroups = 0;
  uint64_t threads = 0;
  uint64_t barriers = 0;         // of threadgroups
  uint64_t simd_operations = 0;  // of simdgroups: shuffles, matrix products, ...
  // fma() and dot(), one for each product, and 512 for a product of simdgroup matrices. A product
  // and a sum written apart are not seen.
  uint64_t multiply_adds = 0;
  size_t threadgroup_bytes = 0;  // the most of a launch
  std::map<std::string, AccessCounts> arguments = {};
};

// A launch of Metal source as text.
struct TextArgument {
  int index;
  std::string name;
  metal::ParameterKind kind;
  std::byte* data = nullptr;  // none: left out, or threadgroup memory
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
};

// One launch at a time; any thread.
class MetalSimulator : public metal::Simulator {
 public:
  explicit MetalSimulator(MachineOptions options = {}) : options_(options) {}

  // Both throw std::runtime_error: kernel, place in the source, threadgroup and thread of the first
  // fault. Outputs are then left as they were.
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

// While it lives, kernel primitives on the CPU device run as on Metal, in a MetalSimulator. A fault
// must not leave MLX's thread: it is kept, and fails the test when this dies, unless it was asked
// for.
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
