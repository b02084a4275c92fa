#include "kernels/expert_routing.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/expert_routing.h"
#include "kernels/metal/expert_routing.h"
#include "kernels/runtime/primitive.h"

namespace octavo {
namespace {

// inputs: logits, then bias and expert scales if present. outputs: ids, weights.
class RouteExperts : public KernelPrimitive {
 public:
  RouteExperts(mx::Stream stream, const ExpertChoice& choice, bool has_bias, bool has_scales)
      : KernelPrimitive(stream), choice_(choice), has_bias_(has_bias), has_scales_(has_scales) {}

  void run_cpu(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs) override {
    count_launch("route_experts.cpu");
    for (const auto& input : inputs) require_contiguous(input);
    for (auto& output : outputs) allocate(output);
    cpu::RoutingArgs args{
        .logits = inputs[0].data<float>(),
        .tokens = inputs[0].shape(0),
        .choice = choice_,
        .ids = outputs[0].data<int32_t>(),
        .weights = outputs[1].data<float>(),
    };
    size_t next = 1;
    if (has_bias_) args.bias = inputs[next++].data<float>();
    if (has_scales_) args.expert_scales = inputs[next].data<float>();
    run_on_cpu(*this, [args] { cpu::route_experts(args); });
  }
  void run_metal(const std::vector<mx::array>& inputs, std::vector<mx::array>& outputs,
                 metal::Encoder& encoder) override {
    for (const auto& input : inputs) require_contiguous(input);
    for (auto& output : outputs) allocate(output);
    metal::RoutingCall call{
        .logits = inputs[0], .choice = choice_, .ids = outputs[0], .weights = outputs[1]};
    size_t next = 1;
    if (has_bias_) call.bias = inputs[next++];
    if (has_scales_) call.expert_scales = inputs[next];
    metal::route_experts(call, encoder);
  }
  const char* name() const override { return "RouteExperts"; }

 private:
  ExpertChoice choice_;
  bool has_bias_;
  bool has_scales_;
};

void check(const mx::array& logits, const ExpertChoice& choice, const RoutingOptions& options) {
  OCTAVO_CHECK(logits.ndim() == 2 && logits.shape(1) == choice.experts);
  OCTAVO_CHECK(logits.dtype() == mx::float32);
  OCTAVO_CHECK(choice.top_k >= 1 && choice.top_k <= choice.experts);
  OCTAVO_CHECK(choice.groups >= 1 && choice.experts % choice.groups == 0);
  OCTAVO_CHECK(choice.top_groups >= 1 && choice.top_groups <= choice.groups);
  for (const auto& each : {options.bias, options.expert_scales}) {
    OCTAVO_CHECK(!each ||
                 (each->shape() == mx::Shape{choice.experts} && each->dtype() == mx::float32));
  }
}

}  // namespace

Routing route_experts(const mx::array& logits, const ExpertChoice& choice,
                      const RoutingOptions& options) {
  check(logits, choice, options);
  if (options.path == KernelPath::kReference)
    return reference::route_experts(logits, choice, options);
  std::vector<mx::array> inputs = {logits};
  if (options.bias) inputs.push_back(*options.bias);
  if (options.expert_scales) inputs.push_back(*options.expert_scales);
  const mx::Shape shape = {logits.shape(0), choice.top_k};
  auto primitive = std::make_shared<RouteExperts>(kernel_stream(), choice, options.bias.has_value(),
                                                  options.expert_scales.has_value());
  auto outputs = mx::array::make_arrays({shape, shape}, {mx::int32, mx::float32},
                                        std::move(primitive), std::move(inputs));
  return {outputs[0], outputs[1]};
}

}  // namespace octavo
