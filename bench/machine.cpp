#include "bench/machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/compute_pool.h"
#include "bench/rates.h"
#include "bench/roofline.h"
#include "kernels/runtime/device.h"

namespace octavo::bench {
namespace {

size_t cache_size([[maybe_unused]] int level, size_t otherwise) {
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long size = ::sysconf(level == 2 ? _SC_LEVEL2_CACHE_SIZE : _SC_LEVEL3_CACHE_SIZE);
  if (size > 0) return static_cast<size_t>(size);
#endif
  return otherwise;
}

template <typename Measure>
Rate rate_of(int passes, const Measure& measure) {
  std::vector<double> rates;
  for (int pass = 0; pass < passes; ++pass) rates.push_back(measure());
  return {.best = *std::max_element(rates.begin(), rates.end()), .median = median(rates)};
}

template <typename Measure>
ThreadRates thread_rates(int passes, const Measure& measure) {
  return {.one = rate_of(passes, [&] { return measure(Threads::kOne); }),
          .all = rate_of(passes, [&] { return measure(Threads::kAll); })};
}

// One core reads `bytes` repeatedly, after a pass that loads them into the cache.
Rate cache_rate(size_t bytes, int passes) {
  const ReadBuffer buffer(bytes);
  const auto memory = buffer.bytes().first(bytes / 256 * 256);
  constexpr size_t kReadPerPass = size_t{256} << 20;
  const int rounds = static_cast<int>(std::max<size_t>(1, kReadPerPass / memory.size()));
  read_rate(memory, Threads::kOne);
  return rate_of(passes, [&] { return read_rate(memory, Threads::kOne, rounds); });
}

void say(const MachineOptions& options, std::string_view what) {
  if (options.progress) options.progress(what);
}

void measure_peaks(const MachineOptions& options, std::vector<PeakRate>& peaks) {
  auto measure = [&](cpu::Isa isa, const char* dtype, const PeakLoop& loop) {
    say(options, fmt::format("{} peak, {}", dtype, name_of(isa)));
    peaks.push_back({.isa = std::string(name_of(isa)),
                     .dtype = dtype,
                     .flops = thread_rates(options.passes, [&](Threads threads) {
                       return peak_rate(loop, threads, options.peak_seconds);
                     })});
  };
  for (cpu::Isa isa : cpu::available_isas()) {
    const Probe& probe = probe_of(isa);
    // A set that only adds bf16 to another shares its fp32 loop, which is measured once.
    if (isa <= cpu::Isa::kAvx512) measure(isa, "float32", probe.fp32);
    if (probe.bf16.run != nullptr) measure(isa, "bfloat16", probe.bf16);
  }
}

}  // namespace

MachineOptions quick_machine_options() {
  return {.read_bytes = size_t{64} << 20, .passes = 1, .peak_seconds = 0.005, .progress = {}};
}

std::string active_kernels() {
  if (device_facts().kind == DeviceKind::kMetal) return "metal";
  return std::string(name_of(cpu::active_isa()));
}

MachineLimits measure_machine(const MachineOptions& options) {
  MachineLimits limits{.threads = compute_pool().threads(),
                       .isa = std::string(name_of(cpu::active_isa())),
                       .isas = {},
                       .l2_bytes = cache_size(2, size_t{1} << 20),
                       .l3_bytes = cache_size(3, size_t{16} << 20),
                       .read_bytes = options.read_bytes,
                       .memory = {},
                       .l2 = {},
                       .l3 = {},
                       .peaks = {},
                       .pool = {},
                       .gpu = {}};
  for (cpu::Isa isa : cpu::available_isas()) limits.isas.emplace_back(name_of(isa));
  {
    say(options, "memory read bandwidth");
    const ReadBuffer buffer(options.read_bytes);
    limits.memory = thread_rates(
        options.passes, [&](Threads threads) { return read_rate(buffer.bytes(), threads); });
  }
  say(options, "cache read bandwidth");
  // Half of L2 leaves space for other data; the L3 size is well above L2 and well below the share
  // that a virtual machine may actually get.
  limits.l2 = cache_rate(limits.l2_bytes / 2, options.passes);
  limits.l3 = cache_rate(std::min(limits.l2_bytes * 6, limits.l3_bytes / 2), options.passes);
  measure_peaks(options, limits.peaks);
  say(options, "compute pool");
  limits.pool = measure_pool(limits.threads, options.passes);
  if (device_facts().kind == DeviceKind::kMetal)
    limits.gpu = measure_gpu(options, {.read_bytes = options.read_bytes});
  return limits;
}

GpuLimits measure_gpu(const MachineOptions& options, const GpuProbeOptions& probe_options) {
  say(options, "GPU");
  GpuProbe probe(probe_options);
  probe.read_rate();  // compiles the kernel and wakes the GPU
  GpuLimits limits{.name = device_facts().name,
                   .clock = {},
                   .read_bytes = probe.read_bytes(),
                   .memory = rate_of(options.passes, [&] { return probe.read_rate(); }),
                   .peaks = {}};
  for (const DType dtype : {DType::kFloat32, DType::kFloat16}) {
    probe.fma_rate(dtype);
    limits.peaks.push_back(
        {.dtype = std::string(name_of(dtype)),
         .flops = rate_of(options.passes, [&] { return probe.fma_rate(dtype); })});
  }
  limits.clock = probe.clock();
  return limits;
}

}  // namespace octavo::bench
