#include "kernels/activation.h"

#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/primitive.h"

namespace octavo {
namespace {

// inputs: gate, up.
class GatedActivation : public KernelPrimitive {
 public:
  GatedActivation(mx::Stream stream, Activation activation)
      : KernelPrimitive(stream), activation_(activation) {}

  void eval_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("gated_activation.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const cpu::GatedArgs args{
        .gate = inputs[0].data<void>(),
        .up = inputs[1].data<void>(),
        .out = outputs[0].data<void>(),
        .dtype = dtype_of(inputs[0]),
        .count = static_cast<int64_t>(inputs[0].size()),
        .activation = activation_,
    };
    run_on_cpu(*this, [args] { cpu::gated_activation(args); });
  }
  const char* name() const override { return "GatedActivation"; }

 private:
  Activation activation_;
};

}  // namespace

mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation,
                           KernelPath path) {
  OCTAVO_CHECK(gate.shape() == up.shape() && gate.dtype() == up.dtype());
  if (path == KernelPath::kReference) return reference::gated_activation(gate, up, activation);
  return mx::array(gate.shape(), gate.dtype(),
                   std::make_shared<GatedActivation>(kernel_stream(), activation), {gate, up});
}

}  // namespace octavo
