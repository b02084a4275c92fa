// simulator.h (metal) - what runs our Metal kernels where there is no Metal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/metal/launch.h"

namespace octavo::metal {

// An argument as memory: of arrays and bytes their place and size, of threadgroup memory the size.
struct BoundArgument {
  const Parameter* parameter;
  std::byte* data;  // none: an optional argument left out, or threadgroup memory
  size_t bytes;
};

// A launch that holds no array of MLX's, so that it can wait in a queue.
struct BoundLaunch {
  const KernelSource* kernel;
  std::vector<std::string> types;
  std::vector<ConstantValue> constants;
  std::vector<BoundArgument> arguments;
  std::vector<std::vector<std::byte>> bytes;  // what kBytes arguments point to
  Size3 groups;
  Size3 threads;
};

class Simulator {
 public:
  virtual ~Simulator() = default;
  // Executes the launch to its end; throws if the kernel did something wrong. Called on MLX's
  // stream thread.
  virtual void run(const BoundLaunch& launch) = 0;
};

// While one is set, every kernel primitive evaluated on the CPU device goes the way it would go on
// Metal, to the simulator. Not owned; none by default.
void set_simulator(Simulator* simulator);
Simulator* simulator();

}  // namespace octavo::metal
