// faulty_simulator.h - runs the Metal kernels with one change in the text of a kernel.
#pragma once

#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/metal/simulator.h"
#include "metal_sim/simulator.h"

namespace octavo {

struct Fault {
  const char* name;
  const char* kernel;
  const char* from;  // text of the kernel with its includes expanded
  const char* to;    // the replacement
  int which = 0;     // occurrence to replace
};

// Runs one kernel with a fault and stores what the simulator detects.
class FaultySimulator : public metal::Simulator {
 public:
  explicit FaultySimulator(const Fault& fault) : fault_(fault) { metal::set_simulator(this); }
  ~FaultySimulator() override { metal::set_simulator(nullptr); }

  void run(const metal::BoundLaunch& launch) override {
    metal::KernelSource source = *launch.kernel;
    std::string text(source.text);
    if (source.name == fault_.kernel) {
      size_t at = text.find(fault_.from);
      for (int i = 0; i < fault_.which && at != std::string::npos; ++i)
        at = text.find(fault_.from, at + 1);
      if (at != std::string::npos) {
        text.replace(at, std::strlen(fault_.from), fault_.to);
        was_put_in_ = true;
      }
    }
    source.text = text;
    metal::BoundLaunch changed = launch;
    changed.kernel = &source;
    try {
      simulator_.run(changed);
    } catch (const std::runtime_error& error) {
      if (found_.empty()) found_ = error.what();
    }
  }

  bool was_put_in() const { return was_put_in_; }
  const std::string& found() const { return found_; }

 private:
  const Fault& fault_;
  metal_sim::MetalSimulator simulator_;
  bool was_put_in_ = false;
  std::string found_;
};

inline constexpr const char* kBarrier = "threadgroup_barrier(mem_flags::mem_threadgroup);";
inline constexpr const char* kLaneBarrier = "simdgroup_barrier(mem_flags::mem_threadgroup);";

}  // namespace octavo
