#include "kernels/norm.h"

#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// inputs: x, weight.
class RmsNorm : public KernelPrimitive {
 public:
  RmsNorm(mx::Stream stream, float eps) : KernelPrimitive(stream), eps_(eps) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("rms_norm.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    const mx::array& x = inputs[0];
    allocate(outputs[0]);
    const cpu::RmsNormArgs args{
        .x = x.data<void>(),
        .out = outputs[0].data<void>(),
        .dtype = dtype_of(x),
        .weight = inputs[1].data<void>(),
        .weight_dtype = dtype_of(inputs[1]),
        .rows = static_cast<int64_t>(x.size()) / x.shape(-1),
        .dim = x.shape(-1),
        .eps = eps_,
    };
    run_on_cpu(*this, [args] { cpu::rms_norm(args); });
  }
  const char* name() const override { return "RmsNorm"; }

 private:
  float eps_;
};

}  // namespace

mx::array rms_norm(const mx::array& x, const mx::array& weight, float eps, KernelPath path) {
  OCTAVO_CHECK(weight.ndim() == 1 && weight.shape(0) == x.shape(-1));
  if (path == KernelPath::kReference) return reference::rms_norm(x, weight, eps);
  return mx::array(x.shape(), x.dtype(), std::make_shared<RmsNorm>(kernel_stream(), eps),
                   {x, weight});
}

}  // namespace octavo
