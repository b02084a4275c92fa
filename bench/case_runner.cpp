#include "bench/case_runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "bench/filter.h"
#include "kernels/runtime/device.h"

namespace octavo::bench {
namespace {

constexpr double kColdBytes = 640e6;  // twice the largest known cache
constexpr double kQuickColdBytes = 16e6;
constexpr size_t kMemory = size_t{1} << 30;
constexpr size_t kQuickMemory = size_t{64} << 20;
constexpr size_t kWindowsPerMemory = 5;

constexpr double kSampleSeconds = 0.02;
constexpr double kQuickSampleSeconds = 0.002;
constexpr double kPeakSeconds = 0.01;
// MLX may take seconds where our kernels take milliseconds: repeat it only for this long.
constexpr double kMlxSeconds = 1.0;

// A contender with the number of calls that make a sample long enough to time.
class Timed {
 public:
  Timed(const Contender& contender, double sample_seconds, bool warm_up) : contender_(contender) {
    if (!contender_) return;
    if (warm_up) contender_(1);
    const double once = seconds_of(1);
    calls_ = static_cast<int>(std::clamp(sample_seconds / once, 1.0, 512.0));
  }

  explicit operator bool() const { return static_cast<bool>(contender_); }
  // Seconds per call. An untimed first call wakes threads that went to sleep in the meantime.
  double seconds() const {
    if (calls_ > 1) contender_(1);
    return seconds_of(calls_);
  }

 private:
  double seconds_of(int calls) const {
    const Stopwatch watch;
    contender_(calls);
    return watch.seconds() / calls;
  }

  const Contender& contender_;
  int calls_ = 1;
};

std::optional<double> median_of(const std::vector<double>& values) {
  return values.empty() ? std::nullopt : std::optional(median(values));
}

// The samples of one case.
struct Turns {
  std::vector<double> seconds, of_limit, of_bandwidth, of_peak, read_rates, peak_rates;
  std::vector<double> mlx, onednn, free_order;  // their time divided by ours

  void add(const Work& work, const Limit& limit, double time) {
    const Fractions part = fractions_of(work, limit, time);
    seconds.push_back(time);
    of_limit.push_back(part.limit);
    of_bandwidth.push_back(part.bandwidth);
    of_peak.push_back(part.peak);
    read_rates.push_back(limit.bytes);
    peak_rates.push_back(limit.flops);
  }

  KernelResult result(const Case& c) const {
    const auto free_ratio = median_of(free_order);
    return {.op = c.name.op,
            .shape = c.name.shape,
            .dtype = c.name.dtype,
            .isa = active_kernels(),
            .seconds = median(seconds),
            .work = c.work,
            .limit = {.bytes = median(read_rates), .flops = median(peak_rates)},
            .fractions = {.limit = median(of_limit),
                          .bandwidth = median(of_bandwidth),
                          .peak = median(of_peak)},
            .vs_mlx = median_of(mlx),
            .vs_onednn = median_of(onednn),
            .invariance_cost =
                free_ratio ? std::optional(1 / *free_ratio - 1) : std::optional<double>()};
  }
};

// OpenMP threads keep spinning for a while after a product and would occupy our cores.
void wait_for_openmp() { std::this_thread::sleep_for(std::chrono::milliseconds(40)); }

class MlxRival {
 public:
  explicit MlxRival(const Contender& contender) : contender_(contender) {}

  bool wants_turn() const { return contender_ && spent_ < kMlxSeconds; }
  double seconds() {
    const double first = sample(1);  // used alone if a second sample would take too long
    if (first > kMlxSeconds / 10) return first;
    return sample(static_cast<int>(std::clamp(kSampleSeconds / first, 1.0, 64.0)));
  }

 private:
  double sample(int calls) {
    const Stopwatch watch;
    contender_(calls);
    spent_ += watch.seconds();
    return watch.seconds() / calls;
  }

  const Contender& contender_;
  double spent_ = 0;
};

}  // namespace

CaseRunner::CaseRunner(const KernelOptions& options)
    : options_(options), memory_(options.quick ? kQuickMemory : kMemory) {
  if (device_facts().kind != DeviceKind::kMetal) return;
  gpu_.emplace(GpuProbeOptions{.read_bytes = memory_.bytes().size() / kWindowsPerMemory});
  gpu_->read_rate();  // compiles the kernels
  gpu_->fma_rate(DType::kFloat32);
}

bool CaseRunner::wants(const CaseName& name) const {
  return matches_filter(name.label(), options_.filter);
}

int CaseRunner::cold_copies(double bytes) const {
  const double total = options_.quick ? kQuickColdBytes : kColdBytes;
  return static_cast<int>(std::clamp(std::ceil(total / bytes), 2.0, 4096.0));
}

Limit CaseRunner::sample_limit(const PeakLoop& peak) {
  if (gpu_) return {.bytes = gpu_->read_rate(), .flops = gpu_->fma_rate(DType::kFloat32)};
  const size_t window = memory_.bytes().size() / kWindowsPerMemory / 256 * 256;
  const auto part = memory_.bytes().subspan(window_begin_, window);
  window_begin_ = (window_begin_ + window) % (window * kWindowsPerMemory);
  return {.bytes = read_rate(part, Threads::kAll),
          .flops = peak_rate(peak, Threads::kAll, kPeakSeconds)};
}

void CaseRunner::run(const Case& c) {
  if (options_.progress) options_.progress(c.name.label());
  const double sample_seconds = options_.quick ? kQuickSampleSeconds : kSampleSeconds;
  const Timed ours(c.ours, sample_seconds, true);
  const Timed onednn(c.onednn, sample_seconds, true);
  if (onednn) wait_for_openmp();
  const Timed free_order(c.free_order, sample_seconds, true);
  MlxRival mlx(c.mlx);
  Turns turns;
  for (int turn = 0; turn < options_.repeats; ++turn) {
    const Limit before = sample_limit(*c.peak);
    double time = ours.seconds();
    turns.add(c.work, between(before, sample_limit(*c.peak)), time);

    // Each rival runs between two of our samples, so that drift favours neither.
    auto against = [&](std::vector<double>& ratios, auto& rival, bool openmp = false) {
      const double rival_time = rival.seconds();
      if (openmp) wait_for_openmp();
      const double again = ours.seconds();
      ratios.push_back(rival_time / ((time + again) / 2));
      time = again;
    };
    if (free_order) against(turns.free_order, free_order);
    if (onednn) against(turns.onednn, onednn, true);
    if (mlx.wants_turn()) against(turns.mlx, mlx);
  }
  results_.push_back(turns.result(c));
}

}  // namespace octavo::bench
