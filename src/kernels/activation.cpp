#include "kernels/activation.h"

#include <memory>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/rows.h"
#include "kernels/metal/activation.h"
#include "kernels/metal/row_tiles.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: gate, and up if present; the columns of up start at `first`.
class GatedActivation : public KernelPrimitive {
 public:
  GatedActivation(mx::Stream stream, Activation activation, int first)
      : KernelPrimitive(stream), activation_(activation), first_(first) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("gated_activation.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const mx::array& gate = inputs[0];
    const mx::array* up = up_of(inputs);
    const cpu::GatedArgs args{
        .gate = gate.data<void>(),
        .up = up != nullptr ? cpu::at(up->data<void>(), dtype_of(*up), first_) : nullptr,
        .out = outputs[0].data<void>(),
        .dtype = dtype_of(gate),
        .rows = static_cast<int64_t>(gate.size()) / gate.shape(-1),
        .cols = gate.shape(-1),
        .up_stride = up != nullptr ? up->shape(-1) : gate.shape(-1),
        .activation = activation_,
    };
    run_on_cpu(*this, [args] { cpu::gated_activation(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    const mx::array& gate = inputs[0];
    const mx::array* up = up_of(inputs);
    metal::Launch launch("gated_activation", {dtype_of(gate)});
    launch.constant("kActivation", metal::shader_value(activation_))
        .constant("kHasUp", up != nullptr)
        .input("gate", gate)
        .optional_input("up", up)
        .output("out", outputs[0])
        .bytes("params",
               metal::GatedActivationParams{.cols = gate.shape(-1),
                                            .up_first = first_,
                                            .up_stride = up != nullptr ? up->shape(-1) : 0});
    encoder.run(metal::over_row_tiles(launch, outputs[0]));
  }
  const char* name() const override { return "GatedActivation"; }

 private:
  static const mx::array* up_of(const std::vector<mx::array>& inputs) {
    return inputs.size() > 1 ? &inputs[1] : nullptr;
  }

  Activation activation_;
  int first_;
};

}  // namespace

mx::array gated_activation(const mx::array& gate, const mx::array& up, Activation activation,
                           KernelPath path) {
  OCTAVO_CHECK(gate.shape() == up.shape() && gate.dtype() == up.dtype());
  if (path == KernelPath::kReference) return reference::gated_activation(gate, up, activation);
  return mx::array(gate.shape(), gate.dtype(),
                   std::make_shared<GatedActivation>(kernel_stream(), activation, 0), {gate, up});
}

mx::array gated_activation(const mx::array& gate, const mx::array& up, int first,
                           Activation activation, KernelPath path) {
  OCTAVO_CHECK(gate.ndim() == 2 && up.ndim() == 2 && gate.shape(0) == up.shape(0));
  OCTAVO_CHECK(gate.dtype() == up.dtype());
  OCTAVO_CHECK(first >= 0 && first + gate.shape(1) <= up.shape(1));
  if (path == KernelPath::kReference) {
    const mx::array part = mx::slice(up, {0, first}, {up.shape(0), first + gate.shape(1)});
    return reference::gated_activation(gate, part, activation);
  }
  return mx::array(gate.shape(), gate.dtype(),
                   std::make_shared<GatedActivation>(kernel_stream(), activation, first),
                   {gate, up});
}

mx::array activation(const mx::array& x, Activation activation, KernelPath path) {
  OCTAVO_CHECK(activation != Activation::kBoundedSilu);
  if (path == KernelPath::kReference)
    return reference::gated_activation(x, mx::ones(x.shape(), x.dtype()), activation);
  return mx::array(x.shape(), x.dtype(),
                   std::make_shared<GatedActivation>(kernel_stream(), activation, 0), {x});
}

}  // namespace octavo
