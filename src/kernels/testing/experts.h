// experts.h - random experts of every weight format, shared by the kernel tests.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "kernels/expert_mlp.h"
#include "kernels/testing/weights.h"

namespace octavo {

// Packed weights of one layout as one stack.
inline ExpertStack stack_of(const std::vector<Weight>& weights) {
  const Weight& first = weights[0];
  const PackedLayout& layout = first.layout;
  const auto count = static_cast<int>(weights.size());
  mx::array packed = make_device_buffer({count, static_cast<int>(first.bytes())}, mx::uint8);
  for (size_t i = 0; i < weights.size(); ++i) {
    std::memcpy(packed.data<std::byte>() + i * first.bytes(), weights[i].packed.data<std::byte>(),
                first.bytes());
  }
  return {count, first.rows, first.cols, layout, std::move(packed)};
}

inline ExpertProjection random_projection(std::mt19937& random, const std::vector<Weight>& weights,
                                          bool biased) {
  ExpertProjection projection{stack_of(weights), std::nullopt};
  if (biased) {
    const int count = static_cast<int>(weights.size());
    projection.bias = random_array(random, {count, weights[0].rows});
  }
  return projection;
}

struct ExpertShape {
  int experts;
  int hidden;
  int inner;
};

// One set of experts per format; each expert's weights are also given one by one.
struct RandomExperts {
  ExpertMlp mlp;
  std::vector<Weight> gate, up, down;
};

inline std::vector<RandomExperts> experts_of_every_format(std::mt19937& random,
                                                          const ExpertShape& shape, bool biased) {
  // By expert: the weights of every format.
  std::vector<std::vector<Weight>> gates, ups, downs;
  for (int e = 0; e < shape.experts; ++e) {
    gates.push_back(every_format(random, shape.inner, shape.hidden));
    ups.push_back(every_format(random, shape.inner, shape.hidden));
    downs.push_back(every_format(random, shape.hidden, shape.inner));
  }
  std::vector<RandomExperts> out;
  for (size_t format = 0; format < gates[0].size(); ++format) {
    const auto of_format = [&](const std::vector<std::vector<Weight>>& all) {
      std::vector<Weight> weights;
      for (const auto& each : all) weights.push_back(each[format]);
      return weights;
    };
    const auto gate = of_format(gates), up = of_format(ups), down = of_format(downs);
    out.push_back({{random_projection(random, gate, biased), random_projection(random, up, biased),
                    random_projection(random, down, biased)},
                   gate,
                   up,
                   down});
  }
  return out;
}

// `top_k` different experts per token, ascending, and weights around 1 / top_k.
inline Routing random_routing(std::mt19937& random, int tokens, int top_k, int experts) {
  const mx::array logits = random_array(random, {tokens, experts});
  Routing routing =
      route_experts(logits, {.experts = experts, .top_k = top_k, .renormalize = true}, {});
  mx::eval(routing.ids, routing.weights);
  return routing;
}

// Experts of one type, with sizes that fill neither the last strip nor the last unit.
inline ExpertMlp odd_experts(std::mt19937& random, int count, DType dtype, Activation activation,
                             bool biased) {
  std::vector<Weight> gate, up, down;
  for (int e = 0; e < count; ++e) {
    gate.push_back(random_dense(random, 41, 75, dtype));
    up.push_back(random_dense(random, 41, 75, dtype));
    down.push_back(random_dense(random, 75, 41, dtype));
  }
  return {random_projection(random, gate, biased), random_projection(random, up, biased),
          random_projection(random, down, biased), activation};
}

}  // namespace octavo
