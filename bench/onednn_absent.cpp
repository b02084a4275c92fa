// Stub for builds without oneDNN.
#include "bench/onednn.h"

namespace octavo::bench {

bool onednn_built() { return false; }

std::unique_ptr<OneDnnProduct> OneDnnProduct::make(const Shape&, int, std::span<const uint16_t>,
                                                   std::span<const uint16_t>) {
  return nullptr;
}

}  // namespace octavo::bench
