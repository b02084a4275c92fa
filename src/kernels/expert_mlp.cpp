#include "kernels/expert_mlp.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/expert_mlp.h"
#include "kernels/metal/expert_mlp.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// The parameters of an Experts primitive besides its inputs.
struct ExpertsShape {
  PackedLayout gate, up, down;  // of one expert
  int experts = 0;
  Activation activation = Activation::kSilu;
  bool has_bias = false;
  bool has_shared = false;
  bool has_shared_gate = false;
  bool has_residual = false;
  std::optional<LoraRows> lora_rows = {};  // nothing: no adapters
  std::array<LoraView, 3> lora = {};       // of gate, up and down, without data: that is an input
};

// inputs: x, ids, weights; gate, up and down, each with its bias if present; then shared, shared
// gate and residual if present; then A and B of the adapters of gate, up and down.
class Experts : public KernelPrimitive {
 public:
  Experts(mx::Stream stream, ExpertsShape shape)
      : KernelPrimitive(stream), shape_(std::move(shape)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("expert_mlp.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    cpu::ExpertMlpArgs args{
        .x = inputs[0].data<void>(),
        .dtype = dtype_of(inputs[0]),
        .tokens = inputs[0].shape(0),
        .experts = shape_.experts,
        .top_k = inputs[1].shape(1),
        .ids = inputs[1].data<int32_t>(),
        .weights = inputs[2].data<float>(),
        .activation = shape_.activation,
        .out = outputs[0].data<void>(),
    };
    size_t next = 3;
    const auto matrix = [&](const PackedLayout& layout) {
      cpu::ExpertMatrix result{.layout = layout, .data = inputs[next++].data<std::byte>()};
      if (!shape_.has_bias) return result;
      args.bias_dtype = dtype_of(inputs[next]);
      result.bias = inputs[next++].data<void>();
      return result;
    };
    args.gate = matrix(shape_.gate);
    args.up = matrix(shape_.up);
    args.down = matrix(shape_.down);
    if (shape_.has_shared) args.shared = inputs[next++].data<void>();
    if (shape_.has_shared_gate) args.shared_gate = inputs[next++].data<float>();
    if (shape_.has_residual) args.residual = inputs[next++].data<void>();
    if (shape_.lora_rows) args.lora = lora_args(inputs, next);
    run_on_cpu(*this, [args] { cpu::expert_mlp(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    OCTAVO_CHECK(!shape_.lora_rows);
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    size_t next = 3;
    const auto layer = [&](const PackedLayout& layout) {
      metal::LinearLayer result{layout, inputs[next++], std::nullopt};
      if (shape_.has_bias) result.bias = inputs[next++];
      return result;
    };
    metal::ExpertMlpCall call{.x = inputs[0],
                              .ids = inputs[1],
                              .weights = inputs[2],
                              .experts = shape_.experts,
                              .gate = layer(shape_.gate),
                              .up = layer(shape_.up),
                              .down = layer(shape_.down),
                              .activation = shape_.activation,
                              .out = outputs[0]};
    if (shape_.has_shared) call.shared = inputs[next++];
    if (shape_.has_shared_gate) call.shared_gate = inputs[next++];
    if (shape_.has_residual) call.residual = inputs[next];
    metal::expert_mlp(call, encoder);
  }
  const char* name() const override { return "Experts"; }

 private:
  std::shared_ptr<const cpu::ExpertLoraArgs> lora_args(const std::vector<mx::array>& inputs,
                                                       size_t next) const {
    const auto view = [&](LoraView layer) {
      layer.a = inputs[next++].data<std::byte>();
      layer.b = inputs[next++].data<std::byte>();
      return layer;
    };
    auto args = std::make_shared<cpu::ExpertLoraArgs>();
    args->tokens = shape_.lora_rows->shared_plan();
    args->gate = view(shape_.lora[0]);
    args->up = view(shape_.lora[1]);
    args->down = view(shape_.lora[2]);
    count_launch("expert_lora.cpu");
    return args;
  }

  ExpertsShape shape_;
};

void check_matrix(const ExpertProjection& p, const ExpertMlp& experts, int rows, int cols) {
  OCTAVO_CHECK(p.weight.count == experts.gate.weight.count);
  OCTAVO_CHECK(p.weight.rows == rows && p.weight.cols == cols);
  OCTAVO_CHECK(p.bias.has_value() == experts.gate.bias.has_value());
  if (!p.bias) return;
  OCTAVO_CHECK(p.bias->shape() == (mx::Shape{p.weight.count, rows}));
  OCTAVO_CHECK(p.bias->dtype() == experts.gate.bias->dtype());
}

void check_expert_lora(const LoraMatrices& lora, const LoraRows& rows, const ExpertStack& weight) {
  OCTAVO_CHECK(lora.shape.inputs == weight.cols && lora.shape.outputs == weight.rows);
  for (const LoraGroup& group : rows.plan().groups)
    OCTAVO_CHECK((group.slot + 1) * weight.count <= lora.shape.slots);
}

void check(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
           const ExpertOptions& options) {
  OCTAVO_CHECK(x.ndim() == 2 && routing.ids.ndim() == 2);
  OCTAVO_CHECK(routing.ids.dtype() == mx::int32 && routing.weights.dtype() == mx::float32);
  OCTAVO_CHECK(routing.ids.shape(0) == x.shape(0));
  OCTAVO_CHECK(routing.ids.shape() == routing.weights.shape());
  const int hidden = x.shape(1);
  const int inner = experts.gate.weight.rows;
  check_matrix(experts.gate, experts, inner, hidden);
  check_matrix(experts.up, experts, inner, hidden);
  check_matrix(experts.down, experts, hidden, inner);
  for (const auto& each : {options.shared, options.residual})
    OCTAVO_CHECK(!each || (each->shape() == x.shape() && each->dtype() == x.dtype()));
  OCTAVO_CHECK(!options.shared_gate ||
               (options.shared && options.shared_gate->dtype() == mx::float32 &&
                options.shared_gate->shape() == (mx::Shape{x.shape(0), 1})));
  if (!options.lora) return;
  OCTAVO_CHECK(options.lora->rows.plan().rows() == x.shape(0));
  check_expert_lora(*options.lora->gate, options.lora->rows, experts.gate.weight);
  check_expert_lora(*options.lora->up, options.lora->rows, experts.up.weight);
  check_expert_lora(*options.lora->down, options.lora->rows, experts.down.weight);
}

void add_adapters(const ExpertLora& lora, ExpertsShape& shape, std::vector<mx::array>& inputs) {
  shape.lora_rows = lora.rows;
  const std::array layers = {lora.gate, lora.up, lora.down};
  for (size_t i = 0; i < layers.size(); ++i) {
    shape.lora[i] = {layers[i]->shape, layers[i]->slots};
    inputs.push_back(layers[i]->a);
    inputs.push_back(layers[i]->b);
  }
}

}  // namespace

mx::array expert_mlp(const mx::array& x, const Routing& routing, const ExpertMlp& experts,
                     const ExpertOptions& options) {
  check(x, routing, experts, options);
  if (options.path == KernelPath::kReference)
    return reference::expert_mlp(x, routing, experts, options);
  std::vector<mx::array> inputs = {x, routing.ids, routing.weights};
  for (const ExpertProjection* projection : {&experts.gate, &experts.up, &experts.down}) {
    inputs.push_back(projection->weight.packed);
    if (projection->bias) inputs.push_back(*projection->bias);
  }
  for (const auto& each : {options.shared, options.shared_gate, options.residual})
    if (each) inputs.push_back(*each);
  ExpertsShape shape{
      .gate = experts.gate.weight.layout,
      .up = experts.up.weight.layout,
      .down = experts.down.weight.layout,
      .experts = experts.gate.weight.count,
      .activation = experts.activation,
      .has_bias = experts.gate.bias.has_value(),
      .has_shared = options.shared.has_value(),
      .has_shared_gate = options.shared_gate.has_value(),
      .has_residual = options.residual.has_value(),
  };
  if (options.lora && options.lora->has_effect(shape.experts))
    add_adapters(*options.lora, shape, inputs);
  return mx::array(x.shape(), x.dtype(),
                   std::make_shared<Experts>(kernel_stream(), std::move(shape)), std::move(inputs));
}

}  // namespace octavo
