// octavo bench throughput - runs many requests at once and shows where the time goes.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/compute_pool.h"
#include "base/units.h"
#include "bench/machine.h"
#include "bench/step_limits.h"
#include "bench/throughput.h"
#include "cli/bench/commands.h"
#include "cli/model_flags.h"
#include "cli/parse/number_check.h"
#include "cli/progress_bar.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

struct BenchThroughputFlags {
  ModelFlags model;
  std::string dataset;  // empty: use num_prompts requests of equal size
  int num_prompts = 100;
  int input_len = 256;
  int output_len = 128;
  uint32_t seed = 0;
  bench::StepLimits machine;
  bool measure = false;
  bool json = false;
};

struct Report {
  const BenchThroughputFlags& flags;
  const bench::ThroughputResult& result;
  bench::StepLimits machine;
  bench::MixCost mix;
  size_t requests;

  double per_second(uint64_t count) const { return static_cast<double>(count) / result.seconds; }
  double rows_per_step() const {
    const SchedulerStats& stats = result.scheduler;
    return static_cast<double>(stats.prompt_tokens + stats.decode_tokens) /
           static_cast<double>(stats.steps);
  }
  double ms_per_step(double seconds) const {
    return seconds * 1e3 / static_cast<double>(result.scheduler.steps);
  }
  // Fraction of the roofline limit reached.
  double fraction() const { return mix.limit_seconds / result.seconds; }
};

Json json_of(const bench::Spread& spread) {
  return {{"mean", spread.mean * 1e3}, {"p50", spread.p50 * 1e3}, {"p99", spread.p99 * 1e3}};
}

Json breakdown_of(const Report& report) {
  const LoopTimes& times = report.result.times;
  return {{"kernels", report.ms_per_step(report.result.kernel_seconds)},
          {"scheduling", report.ms_per_step(times.scheduling)},
          {"queueing", report.ms_per_step(times.queueing)},
          {"waiting", report.ms_per_step(times.waiting)},
          {"all", report.ms_per_step(report.result.seconds)}};
}

void print_json(const Report& report) {
  const bench::ThroughputResult& result = report.result;
  Json out = {
      {"family", result.model.plan.family},
      {"parameters", result.model.parameters},
      {"dtype", name_of(result.model.dtype)},
      {"quantization", result.model.quantization},
      {"threads", compute_pool().threads()},
      {"isa", bench::active_kernels()},
      {"max_num_seqs", report.flags.model.max_num_seqs},
      {"max_num_batched_tokens", report.flags.model.max_num_batched_tokens},
      {"requests", report.requests},
      {"seconds", result.seconds},
      {"prompt_tokens", result.prompt_tokens},
      {"output_tokens", result.output_tokens},
      {"total_tokens", result.prompt_tokens + result.output_tokens},
      {"output_tokens_per_second", report.per_second(result.output_tokens)},
      {"total_tokens_per_second", report.per_second(result.prompt_tokens + result.output_tokens)},
      {"requests_per_second", report.per_second(report.requests)},
      {"steps", result.scheduler.steps},
      {"rows_per_step", report.rows_per_step()},
      {"preemptions", result.scheduler.preemptions},
      {"prefix_hit_tokens", result.scheduler.prefix_hits},
      {"ttft_ms", json_of(result.first_token)},
      {"tpot_ms", json_of(result.token)},
      {"peak_resident_bytes", result.peak_resident_bytes},
      {"plan_bytes", result.memory.total_bytes()},
      {"step_ms", breakdown_of(report)},
      {"outside_kernels_percent", result.outside_kernels() * 100}};
  out["mix"] = {{"steps", report.mix.steps},
                {"rows", report.mix.rows},
                {"bytes", report.mix.total.bytes()},
                {"flops", report.mix.total.flops}};
  if (report.mix.limit_seconds > 0) {
    out["mix"]["read_gbps"] = report.machine.read_gbps;
    out["mix"]["matrix_tflops"] = report.machine.matrix_tflops;
    out["mix"]["limit_seconds"] = report.mix.limit_seconds;
    out["mix"]["limit_fraction"] = report.fraction();
  }
  fmt::print("{}\n", out.dump(2));
}

void row(const char* name, const std::string& value) { fmt::print("  {:<20}{}\n", name, value); }

void spread_row(const char* name, const bench::Spread& spread) {
  row(name, fmt::format("mean {:.1f}, p50 {:.1f}, p99 {:.1f}", spread.mean * 1e3, spread.p50 * 1e3,
                        spread.p99 * 1e3));
}

void print_breakdown(const Report& report) {
  const bench::ThroughputResult& result = report.result;
  const auto part = [&](const char* name, double seconds) {
    fmt::print("  {:<32}{:>9.3f}{:>8.1f}%\n", name, report.ms_per_step(seconds),
               seconds / result.seconds * 100);
  };
  fmt::print("  {:<32}{:>9}{:>9}\n", "Time per step", "ms", "share");
  part("kernels", result.kernel_seconds);
  part("scheduling", result.times.scheduling);
  part("queueing, during the kernels", result.times.queueing);
  part("waiting for the device", result.times.waiting);
  part("outside kernels", result.seconds - result.kernel_seconds);
}

void print_limit(const Report& report) {
  if (report.mix.limit_seconds <= 0) {
    fmt::print("Limit: unknown; give --bandwidth and --peak, or --measure\n");
    return;
  }
  fmt::print("Limit: {:.2f} s for {} steps at {:.1f} GB/s and {:.2f} TFLOP/s; reached {:.1f}%\n",
             report.mix.limit_seconds, report.mix.steps, report.machine.read_gbps,
             report.machine.matrix_tflops, report.fraction() * 100);
}

void print_table(const Report& report) {
  const bench::ThroughputResult& result = report.result;
  const SchedulerStats& stats = result.scheduler;
  const uint64_t all = result.prompt_tokens + result.output_tokens;
  fmt::print("{} with {} parameters, {}, {} threads, {}\n", result.model.plan.family,
             format_count(result.model.parameters), name_of(result.model.dtype),
             compute_pool().threads(), bench::active_kernels());
  row("requests", fmt::format("{} in {:.2f} s, {:.2f} per second", report.requests, result.seconds,
                              report.per_second(report.requests)));
  row("tokens", fmt::format("{} prompt, {} output, {} total", result.prompt_tokens,
                            result.output_tokens, all));
  row("output tok/s", fmt::format("{:.1f}", report.per_second(result.output_tokens)));
  row("total tok/s", fmt::format("{:.1f}", report.per_second(all)));
  row("steps", fmt::format("{} of {:.1f} rows", stats.steps, report.rows_per_step()));
  row("preemptions", fmt::format("{}", stats.preemptions));
  row("prefix hit tokens", fmt::format("{}", stats.prefix_hits));
  spread_row("TTFT ms", result.first_token);
  spread_row("TPOT ms", result.token);
  row("peak RSS", fmt::format("{} of {} planned", format_bytes(result.peak_resident_bytes),
                              format_bytes(result.memory.total_bytes())));
  print_breakdown(report);
  print_limit(report);
}

std::vector<bench::MixRequest> requests_of(const BenchThroughputFlags& flags) {
  if (!flags.dataset.empty()) return bench::read_request_mix(flags.dataset);
  return std::vector<bench::MixRequest>(
      static_cast<size_t>(flags.num_prompts),
      {.prompt_tokens = flags.input_len, .output_tokens = flags.output_len});
}

bench::ThroughputResult measure(const Checkpoint& checkpoint,
                                const bench::ThroughputOptions& options) {
  ProgressBar loading("Loading");
  ProgressBar answering("Generating", [](uint64_t done, uint64_t total, double) {
    return fmt::format("{} of {} requests", done, total);
  });
  return bench::bench_throughput(
      checkpoint, options,
      {.loading = [&](uint64_t done, uint64_t total) { loading.update(done, total); },
       .answering = [&](uint64_t done, uint64_t total) { answering.update(done, total); }});
}

void run(BenchThroughputFlags flags) {
  flags.model.find();
  set_compute_options(flags.model.compute_options());
  bench::ThroughputOptions options{
      .engine = flags.model.engine_options(), .requests = requests_of(flags), .seed = flags.seed};
  const auto cluster = flags.model.form_cluster();
  options.engine.cluster = cluster.get();
  const Checkpoint checkpoint = Checkpoint::open(flags.model.model);
  const DType dtype = describe_model(checkpoint, options.engine.dtype).dtype;
  bench::StepLimits machine = flags.machine;
  if (flags.measure) machine = bench::measure_step_limits(dtype);
  const bench::ThroughputResult result = measure(checkpoint, options);
  if (flags.measure) machine = bench::between(machine, bench::measure_step_limits(dtype));
  const bench::MixOptions mix{.max_num_seqs = options.engine.max_num_seqs,
                              .max_num_batched_tokens = options.engine.max_num_batched_tokens,
                              .kv_format = options.engine.kv_format};
  const Report report{
      .flags = flags,
      .result = result,
      .machine = machine,
      .mix = bench::mix_cost(result.model, result.weights, options.requests, mix, machine),
      .requests = options.requests.size()};
  flags.json ? print_json(report) : print_table(report);
}

}  // namespace

void add_bench_throughput(CLI::App& bench) {
  auto flags = std::make_shared<BenchThroughputFlags>();
  CLI::App* command = bench.add_subcommand(
      "throughput",
      "Run many requests at once, and report the throughput and where the time goes. Prompts are\n"
      "random token ids, and every request generates exactly its number of output tokens.\n\n"
      "The limit is the minimum time on this machine: for each step, the longer of reading the\n"
      "weights and the KV cache once and doing the arithmetic.");
  flags->model.add_to(*command);
  flags->model.add_batch_flags_to(*command);
  flags->model.cluster.add_to(*command);
  const auto option = [&](const char* name, auto& value, const char* about) {
    return command->add_option(name, value, about)->capture_default_str();
  };
  CLI::Option* dataset = option(
      "--dataset", flags->dataset,
      "A JSON file: {\"requests\": [{\"prompt_tokens\": 172, \"output_tokens\": 183}, ...]}");
  option("--num-prompts", flags->num_prompts, "Number of requests")
      ->transform(whole_number(1))
      ->excludes(dataset);
  option("--input-len", flags->input_len, "Tokens per prompt")
      ->transform(whole_number(1))
      ->excludes(dataset);
  option("--output-len", flags->output_len, "Output tokens per request")
      ->transform(whole_number(1))
      ->excludes(dataset);
  option("--seed", flags->seed, "Random seed for the prompts");
  CLI::Option* bandwidth =
      option("--bandwidth", flags->machine.read_gbps, "This machine's read bandwidth in GB/s")
          ->transform(real_number(0, false));
  CLI::Option* peak = option("--peak", flags->machine.matrix_tflops,
                             "This machine's peak matrix throughput in TFLOP/s")
                          ->transform(real_number(0, false))
                          ->needs(bandwidth);
  bandwidth->needs(peak);
  command
      ->add_flag("--measure", flags->measure,
                 "Measure both before and after the run and use the mean; needs 1 GiB of memory")
      ->excludes(bandwidth);
  command->add_flag("--json", flags->json, "Print the results as one JSON object");
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
