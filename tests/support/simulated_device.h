// simulated_device.h - lets a test program run its kernels as on Metal, in the simulator.
#pragma once

#include <iostream>
#include <memory>
#include <stdexcept>

#ifdef OCTAVO_METAL_SIM
#include "metal_sim/simulator.h"
#endif

namespace octavo {

// While it lives, kernels on the CPU device go Metal's way, if that was asked for. finish() throws
// what the simulator has found.
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
