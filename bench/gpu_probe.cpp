#include "bench/gpu_probe.h"

#include <algorithm>

#include "bench/rates.h"
#include "kernels/metal/probe.h"
#include "kernels/runtime/kernel_time.h"

namespace octavo::bench {
namespace {

mx::array probe_words(size_t bytes) {
  constexpr size_t kGroupBytes = size_t{metal::kProbeGroupWords} * 4;
  const size_t groups = std::max<size_t>(1, (bytes + kGroupBytes - 1) / kGroupBytes);
  return mx::full({static_cast<int>(groups) * metal::kProbeGroupWords}, 1u, mx::uint32);
}

}  // namespace

struct GpuProbe::State {
  GpuProbeOptions options;
  mx::array words;
  bool has_gpu_time;

  double seconds_of(mx::array result) const {
    const int64_t before = kernel_nanoseconds();
    const Stopwatch watch;
    result.eval();
    mx::synchronize();
    if (!has_gpu_time) return watch.seconds();
    return static_cast<double>(kernel_nanoseconds() - before) * 1e-9;
  }
};

GpuProbe::GpuProbe(const GpuProbeOptions& options)
    : state_(std::make_unique<State>(State{.options = options,
                                           .words = probe_words(options.read_bytes),
                                           .has_gpu_time = measure_gpu_time()})) {
  state_->words.eval();
  mx::synchronize();
}

GpuProbe::~GpuProbe() = default;
GpuProbe::GpuProbe(GpuProbe&&) noexcept = default;

size_t GpuProbe::read_bytes() const { return state_->words.nbytes(); }

double GpuProbe::read_rate() {
  return static_cast<double>(read_bytes()) / state_->seconds_of(metal::read_probe(state_->words));
}

double GpuProbe::fma_rate(DType dtype) {
  // The factor keeps every chain close to 2, in any number of rounds.
  const metal::FmaProbeParams params{
      .rounds = state_->options.fma_rounds, .factor = 0.5f, .addend = 1.0f};
  const int groups = state_->options.fma_groups;
  return metal::fma_probe_flops(groups, params) /
         state_->seconds_of(metal::fma_probe(dtype, groups, params));
}

std::string_view GpuProbe::clock() const {
  return state_->has_gpu_time ? "GPU time of command buffers"
                              : "wall time of synchronised launches";
}

}  // namespace octavo::bench
