// simulator.h (metal) - interface of the Metal simulator for platforms without Metal.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/metal/launch.h"

namespace octavo::metal {

struct ConstantValue {
  std::string_view name;
  uint32_t bits;  // of a bool, an int or a float
};

// An argument as memory: address and size of arrays and bytes, size of threadgroup memory.
struct BoundArgument {
  const Parameter* parameter;
  std::byte* data;  // null: omitted optional argument, or threadgroup memory
  size_t bytes;
};

// A launch without MLX arrays, so that it can be queued.
struct BoundLaunch {
  const KernelSource* kernel;
  std::vector<std::string> types;
  std::vector<ConstantValue> constants;
  std::vector<BoundArgument> arguments;
  std::vector<std::vector<std::byte>> bytes;  // storage of the kBytes arguments
  Size3 groups;
  Size3 threads;
};

class Simulator {
 public:
  virtual ~Simulator() = default;
  // False: launches are described and dropped, to measure the host's time.
  virtual bool executes() const { return true; }
  // Called for each launch, on the thread that evaluates the step.
  virtual void described(const Launch&) {}
  // Called after each primitive with the time that describing its launches took.
  virtual void encoded(std::chrono::steady_clock::duration) {}
  // Executes the launch; throws if the kernel is faulty. Called on MLX's stream thread.
  virtual void run(const BoundLaunch& launch) = 0;
};

// While a simulator is set, kernel primitives on the CPU device take the Metal path and run in it.
// Not owned; none by default.
void set_simulator(Simulator* simulator);
Simulator* simulator();

}  // namespace octavo::metal
