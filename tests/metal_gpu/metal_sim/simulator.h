// simulator.h (metal_gpu) - replaces metal_sim/simulator.h on a Mac: the tests of tests/metal run
// on the GPU. Accesses are not counted there (kCountsAccesses), and the GPU determines the order of
// threads.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <exception>
#include <map>
#include <string>

#include "kernels/runtime/kernel_path.h"
#include "kernels/runtime/mlx.h"

namespace octavo::metal_sim {

inline constexpr bool kCountsAccesses = false;

enum class ThreadOrder : uint8_t { kForward, kBackward, kShuffled };
struct MachineOptions {
  ThreadOrder order = ThreadOrder::kForward;
  uint32_t seed = 1;
  bool finds_races = true;
};

struct AccessCounts {
  uint64_t load_bytes = 0;
  uint64_t store_bytes = 0;
};
struct KernelCounts {
  uint64_t launches = 0;
  uint64_t barriers = 0;                               // not counted
  std::map<std::string, AccessCounts> arguments = {};  // not counted
};

// The GPU is the default device during its lifetime.
class SimulatedMetal {
 public:
  explicit SimulatedMetal(MachineOptions = {}) {
    mx::set_default_device(mx::Device::gpu);
    reset();
  }
  ~SimulatedMetal() {
    try {
      mx::synchronize();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
    mx::set_default_device(mx::Device::cpu);
  }
  SimulatedMetal(const SimulatedMetal&) = delete;
  SimulatedMetal& operator=(const SimulatedMetal&) = delete;

  // Since construction or reset.
  std::map<std::string, KernelCounts> counts() const {
    static const std::string kEnding = ".metal";
    std::map<std::string, KernelCounts> counts;
    for (const auto& [name, launches] : launch_counts()) {
      const auto found = before_.find(name);
      const int64_t since = launches - (found == before_.end() ? 0 : found->second);
      if (since > 0 && name.ends_with(kEnding))
        counts[name.substr(0, name.size() - kEnding.size())].launches =
            static_cast<uint64_t>(since);
    }
    return counts;
  }
  void reset() { before_ = launch_counts(); }

 private:
  std::map<std::string, int64_t> before_;
};

}  // namespace octavo::metal_sim
