#include "bench/kernels.h"

#include "base/error.h"
#include "bench/cases.h"

namespace octavo::bench {

std::vector<KernelResult> bench_kernels(const KernelOptions& options) {
  OCTAVO_CHECK(options.repeats >= 1);
  CaseRunner runner(options);
  bench_linear(runner);
  bench_attention(runner);
  bench_experts(runner);
  bench_states(runner);
  bench_small_ops(runner);
  if (runner.results().empty()) {
    throw SetupError("--filter " + options.filter +
                     ": no case matches; use words such as linear, paged_attention, experts, "
                     "rms_norm, sample, 1024x3072, M=32, bfloat16, 4-bit");
  }
  return runner.results();
}

}  // namespace octavo::bench
