#include "kernels/head_linear.h"

#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/head_linear.h"
#include "kernels/metal/linear.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: x, the weight.
class HeadLinear : public KernelPrimitive {
 public:
  HeadLinear(mx::Stream stream, const PackedLayout& layout)
      : KernelPrimitive(stream), layout_(layout) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("head_linear.cpu");
    const mx::array& x = inputs[0];
    mx::array& out = outputs[0];
    require_contiguous(x);
    allocate(out);
    const cpu::HeadLinearArgs args{
        .x = x.data<void>(),
        .dtype = dtype_of(x),
        .rows = x.shape(0),
        .heads = x.shape(1),
        .x_stride = x.shape(2),
        .weight = {layout_, inputs[1].data<std::byte>()},
        .out = out.data<void>(),
        .out_stride = out.shape(2),
    };
    run_on_cpu(*this, [args] { cpu::head_linear(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    const mx::array& x = inputs[0];
    require_contiguous(x);
    allocate(outputs[0]);
    metal::linear({.x = x,
                   .rows = x.shape(0),
                   .heads = x.shape(1),
                   .layers = {{layout_, inputs[1], std::nullopt}},
                   .out = outputs[0]},
                  encoder);
  }
  const char* name() const override { return "HeadLinear"; }

 private:
  PackedLayout layout_;
};

}  // namespace

mx::array head_linear(const mx::array& x, const Weight& weight, KernelPath path) {
  OCTAVO_CHECK(x.ndim() == 3 && x.shape(2) == weight.cols);
  const int outputs = weight.rows / x.shape(1);
  OCTAVO_CHECK(outputs * x.shape(1) == weight.rows && outputs % kStripRows == 0);
  if (path == KernelPath::kReference) return reference::head_linear(x, weight);
  return mx::array({x.shape(0), x.shape(1), outputs}, x.dtype(),
                   std::make_shared<HeadLinear>(kernel_stream(), weight.layout),
                   {x, weight.packed});
}

Weight transposed_heads(const Weight& weight, int heads, DType dtype) {
  const int height = weight.rows / heads;
  OCTAVO_CHECK(height * heads == weight.rows);
  mx::array turned =
      mx::transpose(mx::reshape(dequantize(weight), {heads, height, weight.cols}), {0, 2, 1});
  turned = mx::contiguous(mx::astype(turned, mlx_dtype(dtype)));
  turned.eval();
  return make_dense_weight(heads * weight.cols, height, dtype,
                           {turned.data<std::byte>(), turned.nbytes()});
}

}  // namespace octavo
