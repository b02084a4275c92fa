// octavo bench model - times a model's steps without a server and compares them with the roofline.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "bench/cost_tables.h"
#include "bench/model_bench.h"
#include "cli/bench/commands.h"
#include "cli/model_by_name.h"
#include "cli/progress_bar.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct BenchModelFlags {
  std::string model;
  std::string dtype = "auto";
  bench::ModelBenchOptions options;
  bench::StepLimits machine;
  bool json = false;
  std::string costs;  // path
};

// Fraction of the roofline reached; 0 if the limits are unknown.
double fraction(const bench::StepTimes& times, const bench::StepLimits& machine) {
  return times.cost.limit_seconds(machine) / times.median_seconds;
}

Json json_of(const bench::StepTimes& times, const bench::StepLimits& machine) {
  Json json = {{"median_ms", times.median_seconds * 1e3},
               {"tokens_per_second", times.tokens_per_second},
               {"weight_bytes", times.cost.weight_bytes},
               {"kv_bytes", times.cost.kv_bytes},
               {"flops", times.cost.flops},
               {"outside_kernels_percent", times.outside_kernels * 100}};
  if (const double limit = times.cost.limit_seconds(machine); limit > 0) {
    json["limit_ms"] = limit * 1e3;
    json["limit_fraction"] = fraction(times, machine);
  }
  return json;
}

void print_json(const BenchModelFlags& flags, const bench::ModelBenchResult& result) {
  Json json = {{"family", result.model.plan.family},
               {"parameters", result.model.parameters},
               {"dtype", name_of(result.model.dtype)},
               {"quantization", result.model.quantization},
               {"threads", result.threads},
               {"isa", result.isa},
               {"read_gbps", flags.machine.read_gbps},
               {"matrix_tflops", flags.machine.matrix_tflops},
               {"context", flags.options.context},
               {"output_len", flags.options.output_len},
               {"repeats", flags.options.repeats},
               {"decode", Json::array()}};
  for (const auto& [batch_size, times] : result.decode) {
    Json row = {{"batch_size", batch_size}};
    row.update(json_of(times, flags.machine));
    json["decode"].push_back(row);
  }
  if (result.prefill) {
    json["prefill"] = {{"tokens", flags.options.prefill_len}};
    json["prefill"].update(json_of(*result.prefill, flags.machine));
  }
  fmt::print("{}\n", json.dump(2));
}

void print_row(const std::string& name, const bench::StepTimes& times,
               const bench::StepLimits& machine) {
  const double limit = times.cost.limit_seconds(machine);
  fmt::print("  {:<14}{:>10.2f}{:>10.1f}{:>12}{:>12}{:>10.1f}{:>10}{:>8}\n", name,
             times.median_seconds * 1e3, times.tokens_per_second,
             format_bytes(times.cost.weight_bytes), format_bytes(times.cost.kv_bytes),
             static_cast<double>(times.cost.flops) * 1e-9,
             limit > 0 ? fmt::format("{:.2f}", limit * 1e3) : "-",
             limit > 0 ? fmt::format("{:.0f}%", fraction(times, machine) * 100) : "-");
}

void print_table(const BenchModelFlags& flags, const bench::ModelBenchResult& result) {
  fmt::print("{} with {} parameters, {}, {} threads, {}\n", result.model.plan.family,
             format_count(result.model.parameters), name_of(result.model.dtype), result.threads,
             result.isa);
  if (flags.machine.read_gbps > 0 && flags.machine.matrix_tflops > 0) {
    fmt::print("Limits: {:.1f} GB/s, {:.2f} TFLOP/s\n", flags.machine.read_gbps,
               flags.machine.matrix_tflops);
  }
  fmt::print("  {:<14}{:>10}{:>10}{:>12}{:>12}{:>10}{:>10}{:>8}\n", "", "step ms", "tok/s",
             "weights", "KV", "GFLOP", "limit ms", "% limit");
  for (const auto& [batch_size, times] : result.decode)
    print_row(fmt::format("decode B={}", batch_size), times, flags.machine);
  if (result.prefill)
    print_row(fmt::format("prefill {}", flags.options.prefill_len), *result.prefill, flags.machine);
  for (const auto& [batch_size, times] : result.decode) {
    if (batch_size == 1)
      fmt::print("Time outside kernels in a decode step, B=1: {:.1f}%\n",
                 times.outside_kernels * 100);
  }
}

void run(BenchModelFlags& flags) {
  use_device(DeviceChoice::kAuto);
  if (flags.dtype != "auto") flags.options.dtype = parse_dtype(flags.dtype, "--dtype");
  flags.options.costs = !flags.costs.empty();
  const Checkpoint checkpoint = Checkpoint::open(find_model_by_name(flags.model).path);
  bench::ModelBenchResult result;
  {
    ProgressBar bar("Loading");
    result = bench::bench_model(checkpoint, flags.options,
                                [&](uint64_t done, uint64_t total) { bar.update(done, total); });
  }
  if (result.costs) bench::write_npz(flags.costs, bench::cost_tables(*result.costs));
  flags.json ? print_json(flags, result) : print_table(flags, result);
}

}  // namespace

void add_bench_model(CLI::App& parent) {
  auto flags = std::make_shared<BenchModelFlags>();
  CLI::App* command = parent.add_subcommand(
      "model", "Time the decode and prefill steps of a model, without a server");
  const auto option = [&](const char* name, auto& value, const char* about) {
    return command->add_option(name, value, about)->capture_default_str();
  };
  bench::ModelBenchOptions& options = flags->options;
  option("MODEL", flags->model, kModelHelp)->required();
  option("--batch-size", options.batch_sizes, "Batch sizes for decoding, a list like 1,8,32")
      ->delimiter(',')
      ->allow_extra_args(false);
  option("--context", options.context,
         "Context length of each sequence before the first decode step");
  option("--output-len", options.output_len, "Number of decode steps per run");
  option("--prefill-len", options.prefill_len,
         "Prompt length of the timed prefill in tokens; 0 skips it");
  option("--dtype", flags->dtype,
         "Data type for computation and the KV cache: auto, float32, float16, bfloat16");
  option("--repeats", options.repeats, "Number of runs per measurement");
  option("--bandwidth", flags->machine.read_gbps, "This machine's read bandwidth in GB/s");
  option("--peak", flags->machine.matrix_tflops,
         "This machine's peak matrix throughput in TFLOP/s");
  command->add_option(
      "--costs", flags->costs,
      "Also measure prompt chunks of 16 to 512 tokens and a longer context, and write the step "
      "times "
      "to this .npz file, for a simulation of many replicas (bench/fleet_sim.py, Dynamo's mocker)");
  command->add_flag("--json", flags->json, "Print the results as one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
