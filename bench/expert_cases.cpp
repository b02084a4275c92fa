#include <fmt/format.h>

#include <memory>
#include <set>
#include <span>

#include "bench/cases.h"
#include "kernels/expert_mlp.h"

namespace octavo::bench {
namespace {

constexpr int kGroup = 64;

// A mixture-of-experts layer.
struct Layer {
  int hidden;
  int inner;
  int experts;
  int top_k;

  double expert_numbers() const { return 3.0 * hidden * inner; }
};

struct Kind {
  int bits;  // 0: bfloat16

  std::string name() const {
    return bits == 0 ? "bfloat16" : fmt::format("affine {}-bit/{}", bits, kGroup);
  }
  double bytes(double numbers) const {
    return bits == 0 ? numbers * 2 : numbers * bits / 8 + 2 * 2 * numbers / kGroup;
  }
};

CaseName case_name(const Layer& layer, const Kind& kind, int tokens) {
  return {"experts",
          fmt::format("{}x{} {} of {} M={}", layer.hidden, layer.inner, layer.top_k, layer.experts,
                      tokens),
          kind.name()};
}

// All experts have the same values, each in separate memory.
ExpertStack stack_of(const Layer& layer, const Kind& kind, int rows, int cols) {
  const mx::array plain = spread_array({rows, cols}, mx::bfloat16);
  std::vector<mx::array> parts =
      kind.bits == 0 ? std::vector{plain} : mx::quantize(plain, kGroup, kind.bits);
  mx::eval(parts);
  WeightView source{
      .rows = rows, .cols = cols, .dtype = DType::kBFloat16, .data = parts[0].data<std::byte>()};
  if (kind.bits > 0) {
    source.format = WeightFormat::kAffine;
    source.bits = kind.bits;
    source.group_size = kGroup;
    source.scales = parts[1].data<std::byte>();
    source.biases = parts[2].data<std::byte>();
  }
  ExpertStack stack = make_expert_stack(layer.experts, source, rows);
  for (int e = 0; e < layer.experts; ++e) pack_expert(stack, e, source);
  return stack;
}

ExpertMlp experts_of(const Layer& layer, const Kind& kind) {
  return {{stack_of(layer, kind, layer.inner, layer.hidden), std::nullopt},
          {stack_of(layer, kind, layer.inner, layer.hidden), std::nullopt},
          {stack_of(layer, kind, layer.hidden, layer.inner), std::nullopt}};
}

size_t distinct(const Routing& routing) {
  mx::array ids = routing.ids;
  ids.eval();
  return std::set<int32_t>(ids.data<int32_t>(), ids.data<int32_t>() + ids.size()).size();
}

// Router logits of several steps, so that few tokens do not use the same experts every time.
std::vector<mx::array> logits_of_steps(const Layer& layer, int tokens) {
  constexpr int kSteps = 16;
  const mx::array all = spread_array({kSteps * tokens, layer.experts}, mx::float32);
  std::vector<mx::array> steps = mx::split(all, kSteps, 0);
  for (auto& step : steps) step = mx::contiguous(step);
  mx::eval(steps);
  return steps;
}

// From router logits to output, one layer after the other.
void bench_tokens(CaseRunner& runner, const Layer& layer, const Kind& kind, int tokens,
                  const std::shared_ptr<std::vector<ExpertMlp>>& layers) {
  const ExpertChoice choice{.experts = layer.experts, .top_k = layer.top_k, .renormalize = true};
  const mx::array x = spread_array({tokens, layer.hidden}, mx::bfloat16);
  const std::vector<mx::array> logits = logits_of_steps(layer, tokens);
  double touched = 0;  // on average
  for (const auto& step : logits)
    touched += static_cast<double>(distinct(route_experts(step, choice))) /
               static_cast<double>(logits.size());
  const auto run = [layers, choice, x, logits, next = size_t{0}](int calls) mutable {
    std::vector<mx::array> outs;
    for (int i = 0; i < calls; ++i, ++next) {
      const Routing routing = route_experts(logits[next % logits.size()], choice);
      outs.push_back(expert_mlp(x, routing, (*layers)[next % layers->size()]));
    }
    mx::eval(outs);
  };
  runner.run({.name = case_name(layer, kind, tokens),
              .work = {.bytes = kind.bytes(touched * layer.expert_numbers()),
                       .flops = 2.0 * tokens * layer.top_k * layer.expert_numbers()},
              .peak = &bf16_peak_of(cpu::active_isa()),
              .ours = run});
}

}  // namespace

void bench_experts(CaseRunner& runner) {
  // Qwen3-30B-A3B.
  const Layer layer = runner.quick()
                          ? Layer{.hidden = 256, .inner = 128, .experts = 16, .top_k = 4}
                          : Layer{.hidden = 2048, .inner = 768, .experts = 128, .top_k = 8};
  for (const Kind& kind : {Kind{0}, Kind{4}}) {
    std::shared_ptr<std::vector<ExpertMlp>> layers;  // created for the first case that needs them
    for (int tokens : {1, 8, 32, 512}) {
      if (!runner.wants(case_name(layer, kind, tokens)) || (runner.quick() && tokens > 32))
        continue;
      if (!layers) {
        layers = std::make_shared<std::vector<ExpertMlp>>();
        for (int i = 0; i < 2; ++i) layers->push_back(experts_of(layer, kind));
      }
      bench_tokens(runner, layer, kind, tokens, layers);
    }
  }
}

}  // namespace octavo::bench
