#include "kernels/linear.h"

namespace octavo::reference {

mx::array linear(const mx::array& x, const Weight& weight, const LinearOptions& options) {
  count_launch("linear.reference");
  mx::array y = mx::matmul(mx::astype(x, mx::float32), mx::transpose(dequantize(weight)));
  if (options.bias) y = mx::add(y, mx::astype(*options.bias, mx::float32));
  return mx::astype(y, options.out_dtype.value_or(x.dtype()));
}

mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype) {
  count_launch("embed.reference");
  return mx::astype(mx::take(dequantize(table), tokens, 0), dtype);
}

}  // namespace octavo::reference
