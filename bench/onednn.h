// onednn.h - oneDNN's matrix product, for comparison with ours. No MLX.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

namespace octavo::bench {

// Whether octavo was built with oneDNN.
bool onednn_built();

// y = x W^T in bf16, over copies of one weight, each packed once into oneDNN's preferred layout for
// this number of rows. Uses as many threads as the compute pool.
class OneDnnProduct {
 public:
  struct Shape {
    int rows;  // of x
    int cols;  // inputs
    int outputs;
  };

  // Returns null if oneDNN is not built in or does not support this product on this machine.
  // x: [rows, cols]   weight: [outputs, cols]
  static std::unique_ptr<OneDnnProduct> make(const Shape& shape, int copies,
                                             std::span<const uint16_t> x,
                                             std::span<const uint16_t> weight);
  virtual ~OneDnnProduct() = default;

  // Runs `calls` products, each with the next copy.
  virtual void run(int calls) = 0;
  // The result of the last call, [rows, outputs].
  virtual std::span<const uint16_t> output() const = 0;
};

}  // namespace octavo::bench
