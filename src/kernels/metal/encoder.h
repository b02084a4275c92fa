// encoder.h (metal) - submits the launches of one primitive to its device.
#pragma once

#include <cstring>
#include <vector>

#include "kernels/metal/launch.h"

namespace octavo::metal {

// Launches run in the order of the run() calls, each after those whose outputs it reads. While the
// thread has a PipelineCollector, it gets the launches instead of the device.
class Encoder {
 public:
  explicit Encoder(mx::Stream stream) : stream_(stream) {}

  // An array for passing data between launches. It stays allocated until they have run.
  mx::array temporary(mx::Shape shape, mx::Dtype dtype);

  // The same, initialized with host data.
  template <typename Number>
  mx::array temporary(const std::vector<Number>& numbers, mx::Dtype dtype) {
    mx::array array = temporary({static_cast<int>(numbers.size())}, dtype);
    std::memcpy(array.data<void>(), numbers.data(), numbers.size() * sizeof(Number));
    return array;
  }

  // Keeps a temporary of an earlier primitive allocated until the launches that follow have run.
  void keep(const mx::array& array);

  // Does nothing if the launch has no threadgroups, as for a batch without rows.
  void run(const Launch& launch);

 private:
  mx::Stream stream_;
};

// Throws the error of a failed launch on this GPU stream, if one is already known. Does not wait.
void check_stream(mx::Stream stream);

}  // namespace octavo::metal
