#include "kernels/linear.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/embedding_lora.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/linear.h"
#include "kernels/metal/embed.h"
#include "kernels/metal/linear.h"
#include "kernels/metal/norm.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// The parameters of a Linear primitive besides its inputs.
struct LinearShape {
  std::vector<PackedLayout> layouts;
  std::vector<bool> has_bias;  // by layout
  bool is_gated = false;
  Activation activation = Activation::kSilu;
  Norm norm = Norm::kNone;
  float eps = 0;
  bool has_norm_bias = false;
  bool has_residual = false;
  float scale = 1;
  float soft_cap = 0;
  std::optional<LoraRows> lora_rows = {};  // nothing: no adapters
  std::vector<LoraView> lora = {};  // by layout; no slots: none. Without data: that is an input
};

// inputs: x, then per layer its weight and its bias if present, norm weight, norm bias,
// residual, then per layer with adapters their A and B.
class Linear : public KernelPrimitive {
 public:
  Linear(mx::Stream stream, LinearShape shape)
      : KernelPrimitive(stream), shape_(std::move(shape)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("linear.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    const mx::array& x = inputs[0];
    mx::array& out = outputs[0];
    allocate(out);
    cpu::LinearArgs args{
        .x = {.x = x.data<void>(),
              .dtype = dtype_of(x),
              .rows = static_cast<int64_t>(x.size()) / x.shape(-1),
              .cols = x.shape(-1)},
        .part_count = shape_.layouts.size(),
        .is_gated = shape_.is_gated,
        .activation = shape_.activation,
        .scale = shape_.scale,
        .soft_cap = shape_.soft_cap,
        .out = out.data<void>(),
        .out_dtype = dtype_of(out),
        .out_stride = out.shape(-1),
    };
    size_t next = 1;
    for (size_t i = 0; i < shape_.layouts.size(); ++i) {
      args.parts[i].weight = {shape_.layouts[i], inputs[next++].data<std::byte>()};
      if (!shape_.has_bias[i]) continue;
      args.bias_dtype = dtype_of(inputs[next]);
      args.parts[i].bias = inputs[next++].data<void>();
    }
    if (shape_.norm != Norm::kNone) {
      args.x.norm = shape_.norm;
      args.x.eps = shape_.eps;
      args.x.norm_dtype = dtype_of(inputs[next]);
      args.x.norm_weight = inputs[next++].data<void>();
      if (shape_.has_norm_bias) args.x.norm_bias = inputs[next++].data<void>();
    }
    if (shape_.has_residual) args.residual = inputs[next++].data<void>();
    if (shape_.lora_rows) args.lora = lora_args(inputs, next);
    run_on_cpu(*this, [args] { cpu::linear(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    metal::LinearCall call{
        .x = inputs[0],
        .rows = static_cast<int>(inputs[0].size()) / inputs[0].shape(-1),
        .is_gated = shape_.is_gated,
        .activation = shape_.activation,
        .scale = shape_.scale,
        .soft_cap = shape_.soft_cap,
        .out = outputs[0],
    };
    size_t next = 1;
    for (size_t i = 0; i < shape_.layouts.size(); ++i) {
      call.layers.push_back({shape_.layouts[i], inputs[next++], std::nullopt});
      if (shape_.has_bias[i]) call.layers.back().bias = inputs[next++];
    }
    if (shape_.norm != Norm::kNone) {
      call.x = encoder.temporary(inputs[0].shape(), inputs[0].dtype());
      metal::NormCall norm{.x = inputs[0],
                           .weight = inputs[next++],
                           .kind = shape_.norm,
                           .eps = shape_.eps,
                           .out = call.x};
      if (shape_.has_norm_bias) norm.bias = inputs[next++];
      metal::norm(norm, encoder);
    }
    if (shape_.has_residual) call.residual = inputs[next++];
    if (shape_.lora_rows) call.lora = lora_call(inputs, next);
    metal::linear(call, encoder);
  }
  const char* name() const override { return "Linear"; }

 private:
  std::shared_ptr<const cpu::LoraArgs> lora_args(const std::vector<mx::array>& inputs,
                                                 size_t next) const {
    auto args = std::make_shared<cpu::LoraArgs>(shape_.lora_rows->shared_plan(), shape_.lora);
    for (LoraView& layer : args->layers) {
      if (layer.shape.slots == 0) continue;
      layer.a = inputs[next++].data<std::byte>();
      layer.b = inputs[next++].data<std::byte>();
    }
    count_launch("lora.cpu");
    return args;
  }
  metal::LoraCall lora_call(const std::vector<mx::array>& inputs, size_t next) const {
    metal::LoraCall call{shape_.lora_rows->shared_plan(), shape_.lora_rows->tables(), {}};
    for (const LoraView& layer : shape_.lora) {
      if (layer.shape.slots == 0) {
        call.layers.emplace_back();
        continue;
      }
      call.layers.push_back(metal::LoraLayer{layer.shape, inputs[next], inputs[next + 1]});
      next += 2;
    }
    return call;
  }

  LinearShape shape_;
};

float rounded(float value, DType dtype) {
  std::byte bytes[sizeof(float)];
  cpu::store_floats(&value, 1, dtype, bytes);
  cpu::load_floats(bytes, dtype, 1, &value);
  return value;
}

// Throws instead of aborting: if the kernel that draws tokens fails, the next step, which is already
// queued, gets memory that was never written.
void check_tokens(std::span<const int32_t> tokens, int64_t vocab) {
  for (const int32_t token : tokens) {
    if (token < 0 || token >= vocab)
      throw std::out_of_range(
          fmt::format("token {} is outside the vocabulary of {}", token, vocab));
  }
}

// The adapters of an embedding table.
struct EmbedLora {
  std::shared_ptr<const LoraPlan> plan = nullptr;  // null: none
  LoraView view = {};                              // without data: that is an input
};

// inputs: tokens, the table, then A and B of its adapters if there are any.
class Embed : public KernelPrimitive {
 public:
  Embed(mx::Stream stream, const PackedLayout& table, float scale, EmbedLora lora)
      : KernelPrimitive(stream), table_(table), scale_(scale), lora_(std::move(lora)) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("embed.cpu");
    require_contiguous(inputs[0]);
    mx::array& out = outputs[0];
    allocate(out);
    const PackedView table{table_, inputs[1].data<std::byte>()};
    run_on_cpu(*this, [table, lora = lora_with(inputs), tokens = inputs[0].data<int32_t>(),
                       count = inputs[0].size(), target = out.data<void>(), dtype = dtype_of(out),
                       scale = rounded(scale_, dtype_of(out))] {
      check_tokens({tokens, count}, table.layout.rows);
      compute_pool().parallel_for(static_cast<int64_t>(count), 16, [&](int64_t begin, int64_t end) {
        cpu::set_float_state();
        const int64_t cols = table.layout.cols;
        std::vector<float> row(static_cast<size_t>(cols));
        cpu::EmbeddingLora adapters(lora.view);
        for (int64_t i = begin; i < end; ++i) {
          unpack_row(table, tokens[i], row.data());
          const int32_t slot =
              lora.plan != nullptr ? lora.plan->slots[static_cast<size_t>(i)] : kNoLora;
          if (slot != kNoLora) adapters.add(slot, tokens[i], row);
          if (scale != 1) {
            for (float& value : row) value *= scale;
          }
          cpu::store_floats(row.data(), cols, dtype, cpu::at(target, dtype, i * cols));
        }
      });
    });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    OCTAVO_CHECK(lora_.plan == nullptr);
    require_contiguous(inputs[0]);
    allocate(outputs[0]);
    metal::embed({.tokens = inputs[0],
                  .table = inputs[1],
                  .layout = table_,
                  .scale = rounded(scale_, dtype_of(outputs[0])),
                  .out = outputs[0]},
                 encoder);
  }
  const char* name() const override { return "Embed"; }

 private:
  EmbedLora lora_with(const std::vector<mx::array>& inputs) const {
    EmbedLora lora = lora_;
    if (lora.plan == nullptr) return lora;
    count_launch("lora.cpu");
    lora.view.a = inputs[2].data<std::byte>();
    lora.view.b = inputs[3].data<std::byte>();
    return lora;
  }

  PackedLayout table_;
  float scale_;
  EmbedLora lora_;
};

void add_layer(const Projection& layer, LinearShape& shape, std::vector<mx::array>& inputs) {
  shape.layouts.push_back(layer.weight.layout);
  shape.has_bias.push_back(layer.bias.has_value());
  inputs.push_back(layer.weight.packed);
  if (layer.bias) inputs.push_back(*layer.bias);
}

// On Metal, rows of empty slots launch the adapters' kernels too, so that warm-up finds them; they
// change no number.
bool launches_lora(const LoraOptions& lora) {
  if (!uses_metal()) return lora.has_effect();
  return lora.rows.has_adapters() &&
         std::ranges::any_of(lora.layers, [](const auto* layer) { return layer != nullptr; });
}

void add_lora(const LoraOptions& lora, LinearShape& shape, std::vector<mx::array>& inputs) {
  shape.lora_rows = lora.rows;
  for (const LoraMatrices* layer : lora.layers) {
    shape.lora.push_back(layer != nullptr ? LoraView{layer->shape, layer->slots} : LoraView{});
    if (layer == nullptr) continue;
    inputs.push_back(layer->a);
    inputs.push_back(layer->b);
  }
}

mx::array launch(const mx::array& x, int outputs, LinearShape shape, std::vector<mx::array> inputs,
                 const LinearOptions& options) {
  if (options.norm) {
    shape.norm = options.norm->kind;
    shape.eps = options.norm->eps;
    shape.has_norm_bias = options.norm->bias.has_value();
    inputs.push_back(options.norm->weight);
    if (shape.has_norm_bias) inputs.push_back(*options.norm->bias);
  }
  shape.scale = options.scale;
  shape.soft_cap = options.soft_cap;
  mx::Shape out_shape = x.shape();
  out_shape.back() = outputs;
  const mx::Dtype dtype = options.out_dtype.value_or(x.dtype());
  if (options.residual) {
    OCTAVO_CHECK(options.residual->shape() == out_shape && options.residual->dtype() == dtype);
    OCTAVO_CHECK(options.soft_cap <= 0);
    shape.has_residual = true;
    inputs.push_back(*options.residual);
  }
  if (options.lora && launches_lora(*options.lora)) add_lora(*options.lora, shape, inputs);
  return mx::array(std::move(out_shape), dtype,
                   std::make_shared<Linear>(kernel_stream(), std::move(shape)), std::move(inputs));
}

void check_lora(const LoraOptions& lora, const mx::array& x, std::span<const Projection> layers) {
  OCTAVO_CHECK(lora.rows.plan().rows() * x.shape(-1) == static_cast<int64_t>(x.size()));
  OCTAVO_CHECK(lora.layers.size() == layers.size());
  for (size_t i = 0; i < layers.size(); ++i) {
    if (lora.layers[i] == nullptr) continue;
    const LoraShape& shape = lora.layers[i]->shape;
    OCTAVO_CHECK(shape.inputs == layers[i].weight.cols && shape.outputs == layers[i].weight.rows);
    for (const LoraGroup& group : lora.rows.plan().groups) OCTAVO_CHECK(group.slot < shape.slots);
  }
}

}  // namespace

mx::array joined_linear(const mx::array& x, std::span<const Projection> layers,
                        const LinearOptions& options) {
  OCTAVO_CHECK(!layers.empty() && layers.size() <= cpu::kMaxJoined);
  int outputs = 0;
  for (const auto& layer : layers) {
    OCTAVO_CHECK(x.ndim() >= 1 && x.shape(-1) == layer.weight.cols);
    OCTAVO_CHECK(!layer.bias || !layers[0].bias || layer.bias->dtype() == layers[0].bias->dtype());
    outputs += layer.weight.rows;
  }
  if (options.lora) check_lora(*options.lora, x, layers);
  if (options.path == KernelPath::kReference) return reference::joined_linear(x, layers, options);
  LinearShape shape;
  std::vector<mx::array> inputs = {x};
  for (const auto& layer : layers) add_layer(layer, shape, inputs);
  return launch(x, outputs, std::move(shape), std::move(inputs), options);
}

mx::array linear(const mx::array& x, const Weight& weight, const LinearOptions& options) {
  const Projection layer{weight, options.bias};
  return joined_linear(x, std::span(&layer, 1), options);
}

mx::array gated_linear(const mx::array& x, const Projection& gate, const Projection& up,
                       Activation activation, const LinearOptions& options) {
  OCTAVO_CHECK(x.ndim() >= 1 && x.shape(-1) == gate.weight.cols);
  OCTAVO_CHECK(gate.weight.rows == up.weight.rows && gate.weight.cols == up.weight.cols);
  OCTAVO_CHECK(gate.bias.has_value() == up.bias.has_value());
  OCTAVO_CHECK(options.scale == 1 && options.soft_cap <= 0);
  if (options.lora) check_lora(*options.lora, x, std::vector<Projection>{gate, up});
  if (options.path == KernelPath::kReference)
    return reference::gated_linear(x, gate, up, activation, options);
  LinearShape shape;
  shape.is_gated = true;
  shape.activation = activation;
  std::vector<mx::array> inputs = {x};
  add_layer(gate, shape, inputs);
  add_layer(up, shape, inputs);
  return launch(x, gate.weight.rows, std::move(shape), std::move(inputs), options);
}

mx::array embed(const Weight& table, const mx::array& tokens, mx::Dtype dtype, KernelPath path,
                float scale, const std::optional<LoraOptions>& lora) {
  OCTAVO_CHECK(tokens.ndim() == 1 && tokens.dtype() == mx::int32);
  const bool has_lora = lora && lora->has_effect();
  if (has_lora) {
    OCTAVO_CHECK(lora->layers.size() == 1 && lora->rows.plan().rows() == tokens.shape(0));
    const LoraShape& shape = lora->layers[0]->shape;
    OCTAVO_CHECK(shape.inputs == table.cols && shape.outputs == table.rows);
  }
  if (path == KernelPath::kReference) return reference::embed(table, tokens, dtype, scale, lora);
  EmbedLora own;
  std::vector<mx::array> inputs = {tokens, table.packed};
  if (has_lora) {
    const LoraMatrices& matrices = *lora->layers[0];
    own = {lora->rows.shared_plan(), {matrices.shape, matrices.slots}};
    inputs.insert(inputs.end(), {matrices.a, matrices.b});
  }
  return mx::array({tokens.shape(0), table.cols}, dtype,
                   std::make_shared<Embed>(kernel_stream(), table.layout, scale, std::move(own)),
                   std::move(inputs));
}

}  // namespace octavo
