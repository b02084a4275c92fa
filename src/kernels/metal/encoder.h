// encoder.h (metal) - takes the launches of one primitive to its device.
#pragma once

#include "kernels/metal/launch.h"

namespace octavo::metal {

// Launches run in the order of run(), each after the ones whose outputs it reads.
class Encoder {
 public:
  explicit Encoder(mx::Stream stream) : stream_(stream) {}

  // An array for what one launch leaves to the next; it lives until both have run.
  mx::array temporary(mx::Shape shape, mx::Dtype dtype);

  // The same with numbers of the host's.
  template <typename Number>
  mx::array temporary(const std::vector<Number>& numbers, mx::Dtype dtype) {
    mx::array array = temporary({static_cast<int>(numbers.size())}, dtype);
    std::memcpy(array.data<void>(), numbers.data(), numbers.size() * sizeof(Number));
    return array;
  }

  // A launch of no threadgroups, of a batch without rows, does nothing.
  void run(const Launch& launch);

 private:
  mx::Stream stream_;
};

// Throws what launches on this GPU stream have failed with, as far as is known: waits for nothing.
void check_stream(mx::Stream stream);

}  // namespace octavo::metal
