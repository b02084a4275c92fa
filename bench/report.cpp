#include "bench/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "bench/onednn.h"

namespace octavo::bench {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string rate_line(const std::string& name, const Rate& rate, double unit, const char* suffix) {
  return fmt::format("  {:<34}{:>9.1f} {:<8} (median {:.1f})\n", name, rate.best / unit, suffix,
                     rate.median / unit);
}

std::string time_of(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string percent(double fraction) { return fmt::format("{:.1f}%", fraction * 100); }

std::string times(const std::optional<double>& ratio, const char* otherwise = "-") {
  if (!ratio) return otherwise;
  return fmt::format("{:.{}f}x", *ratio, *ratio < 10 ? 2 : 0);
}

std::string cost_of(const std::optional<double>& part) {
  return part ? fmt::format("{:+.1f}%", *part * 100) : "-";
}

OrderedJson json_of(const Rate& rate) { return {{"best", rate.best}, {"median", rate.median}}; }

OrderedJson json_of(const ThreadRates& rates) {
  return {{"one_thread", json_of(rates.one)}, {"all_threads", json_of(rates.all)}};
}

OrderedJson json_of(const std::optional<double>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

OrderedJson json_of(const GpuLimits& gpu) {
  OrderedJson peaks = OrderedJson::array();
  for (const auto& peak : gpu.peaks)
    peaks.push_back({{"dtype", peak.dtype}, {"flops", json_of(peak.flops)}});
  return {{"name", gpu.name},
          {"clock", gpu.clock},
          {"read_bytes", gpu.read_bytes},
          {"memory_bandwidth", json_of(gpu.memory)},
          {"peaks", std::move(peaks)}};
}

std::string gpu_table(const GpuLimits& gpu) {
  std::string text = fmt::format("gpu: {}; {}\n", gpu.name, gpu.clock);
  text +=
      rate_line(fmt::format("memory, {}", format_bytes(gpu.read_bytes)), gpu.memory, 1e9, "GB/s");
  for (const auto& peak : gpu.peaks)
    text += rate_line(fmt::format("{} fma", peak.dtype), peak.flops, 1e9, "GFLOP/s");
  return text;
}

OrderedJson json_of(const std::vector<PoolCost>& costs) {
  OrderedJson list = OrderedJson::array();
  for (const PoolCost& cost : costs) {
    list.push_back({{"threads", cost.threads},
                    {"loop_seconds", cost.loop_seconds},
                    {"claim_seconds", cost.claim_seconds}});
  }
  return list;
}

std::string pool_table(const std::vector<PoolCost>& costs) {
  std::string text =
      "Compute pool: time of a loop besides its work, and of a thread for one more piece\n";
  for (const PoolCost& cost : costs) {
    text += fmt::format("  {:<34}{:>9.2f} us       {:.1f} ns\n",
                        fmt::format("{} thread{}", cost.threads, cost.threads == 1 ? "" : "s"),
                        cost.loop_seconds * 1e6, cost.claim_seconds * 1e9);
  }
  return text;
}

OrderedJson json_of(const MachineLimits& machine) {
  OrderedJson peaks = OrderedJson::array();
  for (const auto& peak : machine.peaks) {
    peaks.push_back({{"isa", peak.isa}, {"dtype", peak.dtype}, {"flops", json_of(peak.flops)}});
  }
  OrderedJson json = {{"threads", machine.threads},
                      {"isa", machine.isa},
                      {"isas", machine.isas},
                      {"l2_bytes", machine.l2_bytes},
                      {"l3_bytes", machine.l3_bytes},
                      {"read_bytes", machine.read_bytes},
                      {"memory_bandwidth", json_of(machine.memory)},
                      {"l2_bandwidth", json_of(machine.l2)},
                      {"l3_bandwidth", json_of(machine.l3)},
                      {"peaks", std::move(peaks)},
                      {"compute_pool", json_of(machine.pool)}};
  if (machine.gpu) json["gpu"] = json_of(*machine.gpu);
  return json;
}

OrderedJson json_of(const KernelResult& result) {
  return {{"op", result.op},
          {"shape", result.shape},
          {"dtype", result.dtype},
          {"isa", result.isa},
          {"seconds", result.seconds},
          {"bytes", result.work.bytes},
          {"flops", result.work.flops},
          {"bytes_per_second", result.work.bytes / result.seconds},
          {"flops_per_second", result.work.flops / result.seconds},
          {"limit_bytes_per_second", result.limit.bytes},
          {"limit_flops_per_second", result.limit.flops},
          {"bound", memory_bound(result.work, result.limit) ? "bandwidth" : "peak"},
          {"fraction_of_limit", result.fractions.limit},
          {"fraction_of_bandwidth", result.fractions.bandwidth},
          {"fraction_of_peak", result.fractions.peak},
          {"vs_mlx", json_of(result.vs_mlx)},
          {"vs_onednn", json_of(result.vs_onednn)},
          {"invariance_cost", json_of(result.invariance_cost)}};
}

}  // namespace

std::string machine_table(const MachineLimits& machine) {
  constexpr double kGiga = 1e9;
  std::string text = fmt::format("cpu: {} (of {}), {} threads; L2 {} per core, L3 {}\n",
                                 machine.isa, fmt::join(machine.isas, ", "), machine.threads,
                                 format_bytes(machine.l2_bytes), format_bytes(machine.l3_bytes));
  text +=
      fmt::format("Read bandwidth, best pass ({} from memory)\n", format_bytes(machine.read_bytes));
  text += rate_line("memory, 1 thread", machine.memory.one, kGiga, "GB/s");
  text += rate_line(fmt::format("memory, {} threads", machine.threads), machine.memory.all, kGiga,
                    "GB/s");
  text += rate_line("L3, 1 thread", machine.l3, kGiga, "GB/s");
  text += rate_line("L2, 1 thread", machine.l2, kGiga, "GB/s");
  text += "Matrix peak\n";
  for (const auto& peak : machine.peaks) {
    const std::string name = fmt::format("{} {}", peak.dtype, peak.isa);
    text += rate_line(name + ", 1 thread", peak.flops.one, kGiga, "GFLOP/s");
    text += rate_line(fmt::format("{}, {} threads", name, machine.threads), peak.flops.all, kGiga,
                      "GFLOP/s");
  }
  text += pool_table(machine.pool);
  return machine.gpu ? text + gpu_table(*machine.gpu) : text;
}

std::string kernel_table(std::span<const KernelResult> results) {
  constexpr auto kRow =
      "{:<15} {:<25} {:<16} {:<11} {:>9} {:>9} {:>7} {:>6} {:>5} {:>7} {:>7} {:>8} {:>9} {:>9}\n";
  std::string text =
      fmt::format(kRow, "op", "shape", "dtype", "isa", "time", "GFLOP/s", "GB/s", "limit", "by",
                  "of BW", "of peak", "vs MLX", "vs oneDNN", "inv. cost");
  for (const auto& r : results) {
    const bool memory = memory_bound(r.work, r.limit);
    text += fmt::format(kRow, r.op, r.shape, r.dtype, r.isa, time_of(r.seconds),
                        fmt::format("{:.1f}", r.work.flops / r.seconds / 1e9),
                        fmt::format("{:.1f}", r.work.bytes / r.seconds / 1e9),
                        percent(r.fractions.limit), memory ? "BW" : "peak",
                        percent(r.fractions.bandwidth), percent(r.fractions.peak), times(r.vs_mlx),
                        times(r.vs_onednn, onednn_built() ? "-" : "not built"),
                        cost_of(r.invariance_cost));
  }
  return text;
}

std::string report_json(const MachineLimits& machine, std::span<const KernelResult> results) {
  OrderedJson list = OrderedJson::array();
  for (const auto& result : results) list.push_back(json_of(result));
  return OrderedJson{{"machine", json_of(machine)}, {"onednn", onednn_built()}, {"results", list}}
      .dump(2);
}

}  // namespace octavo::bench
