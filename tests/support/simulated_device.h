// simulated_device.h - runs the kernels of a test program in the Metal simulator.
#pragma once

#include <iostream>
#include <memory>
#include <stdexcept>

#ifdef OCTAVO_METAL_SIM
#include "metal_sim/simulator.h"
#endif

namespace octavo {

// If is_metal, kernels on the CPU device take the Metal path during its lifetime. finish() throws
// the fault that the simulator detected.
class SimulatedDevice {
 public:
#ifdef OCTAVO_METAL_SIM
  explicit SimulatedDevice(bool is_metal) {
    if (is_metal) metal_ = std::make_unique<metal_sim::SimulatedMetal>();
  }
  void finish() {
    if (!metal_) return;
    if (const auto fault = metal_->take_fault()) throw std::runtime_error(*fault);
  }

 private:
  std::unique_ptr<metal_sim::SimulatedMetal> metal_;
#else
  explicit SimulatedDevice(bool is_metal) {
    if (is_metal) throw std::runtime_error("built without the Metal simulator");
  }
  void finish() {}
#endif
};

}  // namespace octavo
