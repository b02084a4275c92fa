#include <fmt/format.h>
#include <mlx/fast.h>

#include "bench/cases.h"
#include "kernels/norm.h"
#include "kernels/sampling.h"

namespace octavo::bench {
namespace {

// Applies `op` to the inputs in turn.
template <typename Op>
Contender over(std::shared_ptr<std::vector<mx::array>> inputs, Op op) {
  return [inputs, op, next = size_t{0}](int calls) mutable {
    std::vector<mx::array> outs;
    for (int i = 0; i < calls; ++i) outs.push_back(op((*inputs)[next++ % inputs->size()]));
    mx::eval(outs);
  };
}

std::shared_ptr<std::vector<mx::array>> cold_inputs(const CaseRunner& runner,
                                                    const mx::array& input) {
  const int count = runner.cold_copies(static_cast<double>(input.nbytes()));
  return std::make_shared<std::vector<mx::array>>(copies_of(input, count));
}

void bench_rms_norm(CaseRunner& runner) {
  const int rows = runner.quick() ? 32 : 512;
  const int width = 1024;
  const CaseName name{"rms_norm", fmt::format("{}x{}", rows, width), "bfloat16"};
  if (!runner.wants(name)) return;
  const mx::array weight = spread_array({width}, mx::bfloat16);
  const mx::array x = spread_array({rows, width}, mx::bfloat16);
  const auto inputs = cold_inputs(runner, x);
  Case c{
      .name = name,
      .work = {.bytes = static_cast<double>(x.nbytes()), .flops = 4.0 * rows * width},
      .peak = &probe_of(cpu::active_isa()).fp32,
      .ours = over(inputs, [weight](const mx::array& in) { return rms_norm(in, weight, 1e-6f); })};
  if (runner.mlx()) {
    c.mlx = over(inputs,
                 [weight](const mx::array& in) { return mx::fast::rms_norm(in, weight, 1e-6f); });
  }
  runner.run(c);
}

void bench_sample(CaseRunner& runner, const char* how, const RowSampling& sampling) {
  const int rows = runner.quick() ? 4 : 32;
  const int vocab = runner.quick() ? 4096 : 151936;
  const CaseName name{"sample", fmt::format("{}x{} {}", rows, vocab, how), "float32"};
  if (!runner.wants(name)) return;
  const mx::array logits = spread_array({rows, vocab}, mx::float32);
  const auto inputs = cold_inputs(runner, logits);
  const std::vector<RowSampling> all(static_cast<size_t>(rows), sampling);
  Case c{.name = name,
         .work = {.bytes = static_cast<double>(logits.nbytes()), .flops = 1.0 * rows * vocab},
         .peak = &probe_of(cpu::active_isa()).fp32,
         .ours = over(inputs, [all](const mx::array& in) { return sample(in, all).tokens; })};
  if (runner.mlx() && sampling.temperature == 0) {
    c.mlx = over(inputs, [](const mx::array& in) { return mx::argmax(in, -1); });
  }
  runner.run(c);
}

}  // namespace

void bench_small_ops(CaseRunner& runner) {
  bench_rms_norm(runner);
  bench_sample(runner, "greedy", {});
  bench_sample(runner, "temperature", {.temperature = 0.8f, .seed = 1});
  bench_sample(runner, "top-p of all", {.temperature = 0.8f, .top_p = 0.9f, .seed = 1});
  bench_sample(runner, "top-p", {.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .seed = 1});
}

}  // namespace octavo::bench
