// onednn.h - oneDNN's matrix product, to be timed beside ours. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace octavo::bench {

// Whether the library was there when octavo was built.
bool onednn_built();

// y = x W^T in bf16, over copies of one weight, each packed once into the layout oneDNN likes best
// for this number of rows. Runs on as many threads as the compute pool has.
class OneDnnProduct {
 public:
  struct Shape {
    int rows;  // of x
    int cols;  // inputs
    int outputs;
  };

  // Returns null if oneDNN was not built in or does not support this product on this machine.
  //   x:      [rows, cols]
  //   weight: [outputs, cols]
  static std::unique_ptr<OneDnnProduct> make(const Shape& shape, int copies,
                                             std::span<const uint16_t> x,
                                             std::span<const uint16_t> weight);
  virtual ~OneDnnProduct() = default;

  // `calls` products, each with the next copy.
  virtual void run(int calls) = 0;
  // [rows, outputs] of the last call.
  virtual std::span<const uint16_t> output() const = 0;
};

}  // namespace octavo::bench
