#include "kernels/expert_halves.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/expert_mlp.h"
#include "kernels/metal/expert_mlp.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// Starts with the inputs x (or the activations), ids and weights; appends matrices and their biases.
class Inputs {
 public:
  Inputs(const mx::array& x, const Routing& routing) : all_{x, routing.ids, routing.weights} {}

  void add(const ExpertProjection& projection) {
    all_.push_back(projection.weight.packed);
    add(projection.bias);
  }
  void add(const std::optional<mx::array>& array) {
    if (array) all_.push_back(*array);
  }
  std::vector<mx::array> take() { return std::move(all_); }

 private:
  std::vector<mx::array> all_;
};

// Reads Inputs in their order.
class InputReader {
 public:
  InputReader(const std::vector<mx::array>& inputs, mx::array& out, int experts) : inputs_(inputs) {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(out);
    args = {
        .x = inputs[0].data<void>(),
        .dtype = dtype_of(inputs[0]),
        .tokens = inputs[1].shape(0),
        .experts = experts,
        .top_k = inputs[1].shape(1),
        .ids = inputs[1].data<int32_t>(),
        .weights = inputs[2].data<float>(),
        .out = out.data<void>(),
    };
  }

  cpu::ExpertMatrix matrix(const PackedLayout& layout, bool has_bias) {
    cpu::ExpertMatrix result{.layout = layout, .data = next<std::byte>()};
    if (!has_bias) return result;
    args.bias_dtype = dtype_of(inputs_[next_]);
    result.bias = next<void>();
    return result;
  }
  template <typename T>
  const T* next() {
    return inputs_[next_++].data<T>();
  }

  cpu::ExpertMlpArgs args;

 private:
  const std::vector<mx::array>& inputs_;
  size_t next_ = 3;
};

// Reads the same Inputs for Metal.
class MetalInputReader {
 public:
  explicit MetalInputReader(const std::vector<mx::array>& inputs) : inputs_(inputs) {
    for (const auto& input : inputs) require_contiguous(input);
  }

  metal::LinearLayer layer(const PackedLayout& layout, bool has_bias) {
    metal::LinearLayer result{layout, inputs_[next_++], std::nullopt};
    result.bias = next_if(has_bias);
    return result;
  }
  std::optional<mx::array> next_if(bool is_present) {
    return is_present ? std::optional(inputs_[next_++]) : std::nullopt;
  }

 private:
  const std::vector<mx::array>& inputs_;
  size_t next_ = 3;
};

struct ActivationsShape {
  PackedLayout gate, up;  // of one expert
  int experts = 0;
  Activation activation = Activation::kSilu;
  bool has_bias = false;
};

// On the CPU the output is [T, top_k, inner]. On Metal, outputs are the rows of all pairs sorted by
// expert and each pair's row.
class ExpertActivations : public KernelPrimitive {
 public:
  ExpertActivations(mx::Stream stream, const ActivationsShape& shape)
      : KernelPrimitive(stream), shape_(shape) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("expert_activations.cpu");
    OCTAVO_CHECK(outputs.size() == 1);
    InputReader reader(inputs, outputs[0], shape_.experts);
    reader.args.gate = reader.matrix(shape_.gate, shape_.has_bias);
    reader.args.up = reader.matrix(shape_.up, shape_.has_bias);
    reader.args.activation = shape_.activation;
    run_on_cpu(*this, [args = reader.args] { cpu::expert_activations(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    OCTAVO_CHECK(outputs.size() == 2);
    MetalInputReader reader(inputs);
    for (mx::array& output : outputs) allocate(output);
    const metal::LinearLayer gate = reader.layer(shape_.gate, shape_.has_bias);
    const metal::LinearLayer up = reader.layer(shape_.up, shape_.has_bias);
    metal::expert_activations({.x = inputs[0],
                               .ids = inputs[1],
                               .experts = shape_.experts,
                               .gate = gate,
                               .up = up,
                               .activation = shape_.activation,
                               .out = outputs[0],
                               .places = outputs[1]},
                              encoder);
  }
  const char* name() const override { return "ExpertActivations"; }

 private:
  ActivationsShape shape_;
};

struct OutputsShape {
  PackedLayout down;  // of one expert
  int experts = 0;
  bool has_bias = false;
  bool has_shared = false;
  bool has_shared_gate = false;
  bool has_residual = false;
};

class ExpertOutputs : public KernelPrimitive {
 public:
  ExpertOutputs(mx::Stream stream, const OutputsShape& shape)
      : KernelPrimitive(stream), shape_(shape) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("expert_outputs.cpu");
    InputReader reader(inputs, outputs[0], shape_.experts);
    reader.args.down = reader.matrix(shape_.down, shape_.has_bias);
    if (shape_.has_shared) reader.args.shared = reader.next<void>();
    if (shape_.has_shared_gate) reader.args.shared_gate = reader.next<float>();
    if (shape_.has_residual) reader.args.residual = reader.next<void>();
    run_on_cpu(*this, [args = reader.args] { cpu::expert_outputs(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    MetalInputReader reader(inputs);
    allocate(outputs[0]);
    metal::ExpertOutputsCall call{.inner = inputs[0],
                                  .ids = inputs[1],
                                  .weights = inputs[2],
                                  .experts = shape_.experts,
                                  .down = reader.layer(shape_.down, shape_.has_bias),
                                  .out = outputs[0]};
    call.shared = reader.next_if(shape_.has_shared);
    call.shared_gate = reader.next_if(shape_.has_shared_gate);
    call.residual = reader.next_if(shape_.has_residual);
    metal::expert_outputs(call, encoder);
  }
  const char* name() const override { return "ExpertOutputs"; }

 private:
  OutputsShape shape_;
};

void check_routing(const Routing& routing, int tokens) {
  OCTAVO_CHECK(routing.ids.ndim() == 2 && routing.ids.shape(0) == tokens);
  OCTAVO_CHECK(routing.ids.dtype() == mx::int32 && routing.weights.dtype() == mx::float32);
  OCTAVO_CHECK(routing.ids.shape() == routing.weights.shape());
}

void check_bias(const ExpertProjection& layer) {
  OCTAVO_CHECK(!layer.bias ||
               layer.bias->shape() == (mx::Shape{layer.weight.count, layer.weight.rows}));
}

void check_activations(const mx::array& x, const Routing& routing, const ExpertProjection& gate,
                       const ExpertProjection& up) {
  OCTAVO_CHECK(x.ndim() == 2);
  check_routing(routing, x.shape(0));
  OCTAVO_CHECK(gate.weight.cols == x.shape(1) && up.weight.cols == x.shape(1));
  OCTAVO_CHECK(gate.weight.count == up.weight.count && gate.weight.rows == up.weight.rows);
  OCTAVO_CHECK(gate.bias.has_value() == up.bias.has_value());
  OCTAVO_CHECK(!gate.bias || gate.bias->dtype() == up.bias->dtype());
  check_bias(gate);
  check_bias(up);
}

void check_outputs(const mx::array& inner, const Routing& routing, const ExpertProjection& down,
                   const ExpertOptions& options) {
  OCTAVO_CHECK(inner.ndim() == 3 && inner.shape(2) == down.weight.cols);
  check_routing(routing, inner.shape(0));
  OCTAVO_CHECK(inner.shape(1) == routing.ids.shape(1));
  check_bias(down);
  const mx::Shape out = {inner.shape(0), down.weight.rows};
  for (const auto& each : {options.shared, options.residual})
    OCTAVO_CHECK(!each || (each->shape() == out && each->dtype() == inner.dtype()));
  OCTAVO_CHECK(!options.shared_gate ||
               (options.shared && options.shared_gate->dtype() == mx::float32 &&
                options.shared_gate->shape() == (mx::Shape{inner.shape(0), 1})));
  OCTAVO_CHECK(!options.lora);
}

}  // namespace

mx::array expert_activations(const mx::array& x, const Routing& routing,
                             const ExpertProjection& gate, const ExpertProjection& up,
                             Activation activation, KernelPath path) {
  check_activations(x, routing, gate, up);
  if (path == KernelPath::kReference)
    return reference::expert_activations(x, routing, gate, up, activation);
  Inputs inputs(x, routing);
  inputs.add(gate);
  inputs.add(up);
  const ActivationsShape shape{.gate = gate.weight.layout,
                               .up = up.weight.layout,
                               .experts = gate.weight.count,
                               .activation = activation,
                               .has_bias = gate.bias.has_value()};
  auto primitive = std::make_shared<ExpertActivations>(kernel_stream(), shape);
  const mx::Shape out = {x.shape(0), routing.ids.shape(1), gate.weight.rows};
  if (!uses_metal()) return mx::array(out, x.dtype(), std::move(primitive), inputs.take());
  const int pairs = out[0] * out[1];
  const auto sorted = mx::array::make_arrays({{pairs, out[2]}, {pairs}}, {x.dtype(), mx::int32},
                                             std::move(primitive), inputs.take());
  return mx::reshape(mx::take(sorted[0], sorted[1], 0), out);
}

mx::array expert_outputs(const mx::array& inner, const Routing& routing,
                         const ExpertProjection& down, const ExpertOptions& options) {
  check_outputs(inner, routing, down, options);
  if (options.path == KernelPath::kReference)
    return reference::expert_outputs(inner, routing, down, options);
  Inputs inputs(inner, routing);
  inputs.add(down);
  for (const auto& each : {options.shared, options.shared_gate, options.residual}) inputs.add(each);
  const OutputsShape shape{.down = down.weight.layout,
                           .experts = down.weight.count,
                           .has_bias = down.bias.has_value(),
                           .has_shared = options.shared.has_value(),
                           .has_shared_gate = options.shared_gate.has_value(),
                           .has_residual = options.residual.has_value()};
  return mx::array({inner.shape(0), down.weight.rows}, inner.dtype(),
                   std::make_shared<ExpertOutputs>(kernel_stream(), shape), inputs.take());
}

}  // namespace octavo
