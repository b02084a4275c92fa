#include "kernels/metal/expert_routing.h"

#include <fmt/format.h>

#include "base/error.h"
#include "kernels/metal/expert_routing_params.h"

namespace octavo::metal {
namespace {

// Threadgroup memory for `count` words, rounded up to a multiple of 16 bytes.
size_t bytes_of(int count) { return (static_cast<size_t>(count) * 4 + 15) / 16 * 16; }

}  // namespace

void route_experts(const RoutingCall& call, Encoder& encoder) {
  const ExpertChoice& choice = call.choice;
  if (choice.experts > kMostExperts) {
    throw SetupError(fmt::format("the model has {} experts; the Metal kernels support at most {}",
                                 choice.experts, kMostExperts));
  }
  Launch launch("route_experts");
  launch.constant("kScore", static_cast<int>(choice.score))
      .constant("kHasBias", call.bias.has_value())
      .constant("kHasScales", call.expert_scales.has_value())
      .constant("kHasGroups", choice.top_groups < choice.groups)
      .constant("kBestOfGroup", choice.group_score == GroupScore::kBest)
      .constant("kRenormalize", choice.renormalize)
      .input("logits", call.logits)
      .optional_input("bias", call.bias)
      .optional_input("expert_scales", call.expert_scales)
      .output("ids", call.ids)
      .output("weights", call.weights)
      .bytes("params", RoutingParams{.experts = choice.experts,
                                     .top_k = choice.top_k,
                                     .groups = choice.groups,
                                     .top_groups = choice.top_groups,
                                     .scale = choice.scale,
                                     .renormalize_eps = choice.renormalize_eps})
      .threadgroup("scores", bytes_of(choice.experts))
      .threadgroup("keys", bytes_of(choice.experts))
      .threadgroup("group_keys", bytes_of(choice.groups))
      .threadgroup("chosen", bytes_of(choice.top_k))
      .threadgroup("picked", bytes_of(choice.top_k))
      .grid({static_cast<uint32_t>(call.logits.shape(0))}, {32});
  encoder.run(launch);
}

}  // namespace octavo::metal
