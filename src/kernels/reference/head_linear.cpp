#include "kernels/head_linear.h"

namespace octavo::reference {

mx::array head_linear(const mx::array& x, const Weight& weight) {
  count_launch("head_linear.reference");
  const int heads = x.shape(1);
  const mx::array matrices =
      mx::reshape(dequantize(weight), {heads, weight.rows / heads, weight.cols});
  const mx::array by_head = mx::transpose(mx::astype(x, mx::float32), {1, 0, 2});
  const mx::array product = mx::matmul(by_head, mx::transpose(matrices, {0, 2, 1}));
  return mx::contiguous(mx::astype(mx::transpose(product, {1, 0, 2}), x.dtype()));
}

}  // namespace octavo::reference
