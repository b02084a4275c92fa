#include "kernels/causal_conv.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/causal_conv.h"
#include "kernels/metal/row_tiles.h"
#include "kernels/metal/state_places.h"
#include "kernels/runtime/primitive.h"
#include "kernels/state_inputs.h"

namespace octavo {
namespace {

// inputs: state_inputs(), x, taps, bias if present. outputs: y, and the pages' own buffer.
class CausalConv : public KernelPrimitive {
 public:
  CausalConv(mx::Stream stream, const StateGeometry& geometry, const ConvOptions& options)
      : KernelPrimitive(stream), geometry_(geometry), options_(options) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("causal_conv.cpu");
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const cpu::StateBatch batch = state_batch(inputs, geometry_);
    const mx::array& x = inputs[kStateInputs];
    const mx::array& taps = inputs[kStateInputs + 1];
    const bool biased = inputs.size() > kStateInputs + 2;
    const auto width = static_cast<int64_t>(size_of(geometry_.conv_dtype));
    const cpu::ConvJob job{
        .x = x.data<std::byte>() + options_.first_column * width,
        .x_stride = x.shape(1) * width,
        .dtype = geometry_.conv_dtype,
        .channels = geometry_.channels(),
        .past_rows = geometry_.conv_rows,
        .taps = taps.data<void>(),
        .bias = biased ? inputs[kStateInputs + 2].data<void>() : nullptr,
        .weight_dtype = dtype_of(taps),
        .silu = options_.activation == ConvActivation::kSilu,
        .out = outputs[0].data<void>(),
    };
    run_on_cpu(*this, [batch, job] { cpu::causal_conv(batch, job); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    allocate(outputs[0]);
    outputs[1].copy_shared_buffer(inputs[0]);
    const mx::array& table = inputs[2];
    const mx::array& x = inputs[kStateInputs];
    const mx::array& taps = inputs[kStateInputs + 1];
    const bool biased = inputs.size() > kStateInputs + 2;
    const metal::ConvParams params{
        .places = metal::unit_places(geometry_, inputs[0].shape(1), table.shape(1)),
        .sequences = table.shape(0),
        .channels = geometry_.channels(),
        .unit_channels = geometry_.unit_channels,
        .x_stride = x.shape(1),
        .x_first = options_.first_column};
    metal::Launch launch("causal_conv", {geometry_.conv_dtype, dtype_of(taps), taps.shape(0)});
    launch.constant("kSilu", options_.activation == ConvActivation::kSilu)
        .constant("kHasBias", biased)
        .output("pages", outputs[1])
        .input("cu_seqlens", inputs[1])
        .input("table", table)
        .input("x", x)
        .input("taps", taps)
        .optional_input("bias", biased ? &inputs[kStateInputs + 2] : nullptr)
        .output("out", outputs[0])
        .bytes("params", params)
        .grid({metal::groups_of(params.channels, metal::kConvThreads),
               static_cast<uint32_t>(x.shape(0) / metal::kConvRows + params.sequences)},
              {metal::kConvThreads});
    encoder.run(launch);
  }
  const char* name() const override { return "CausalConv"; }

 private:
  StateGeometry geometry_;
  ConvOptions options_;
};

void check_weights(const StateGeometry& g, const ConvWeights& weights) {
  OCTAVO_CHECK(g.conv_units > 0);
  OCTAVO_CHECK((weights.taps.shape() == mx::Shape{g.conv_rows + 1, g.channels()}));
  if (!weights.bias) return;
  OCTAVO_CHECK(weights.bias->shape() == mx::Shape{g.channels()});
  OCTAVO_CHECK(weights.bias->dtype() == weights.taps.dtype());
}

}  // namespace

Convolved causal_conv(const StatePages& pages, const mx::array& x, const ConvWeights& weights,
                      const ConvOptions& options, const BatchLayout& layout,
                      const mx::array& table) {
  const StateGeometry& g = pages.geometry;
  check_state(pages, layout, table);
  check_weights(g, weights);
  OCTAVO_CHECK(x.ndim() == 2 && x.shape(0) == layout.tokens() && dtype_of(x) == g.conv_dtype);
  OCTAVO_CHECK(options.first_column >= 0 && options.first_column + g.channels() <= x.shape(1));
  if (pages.path == KernelPath::kReference) {
    return reference::causal_conv(pages, x, weights, options, layout, table);
  }
  std::vector<mx::array> inputs = state_inputs(pages, layout, table);
  inputs.push_back(x);
  inputs.push_back(weights.taps);
  if (weights.bias) inputs.push_back(*weights.bias);
  auto outputs = mx::array::make_arrays(
      {{layout.tokens(), g.channels()}, pages.bytes.shape()}, {x.dtype(), mx::uint8},
      std::make_shared<CausalConv>(kernel_stream(), g, options), std::move(inputs));
  return {outputs[0], {outputs[1], g, pages.path}};
}

}  // namespace octavo
