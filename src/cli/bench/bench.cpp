// octavo bench - measures this machine's limits and how close octavo comes to them.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "bench/kernels.h"
#include "bench/machine.h"
#include "bench/report.h"
#include "cli/bench/commands.h"
#include "cli/commands.h"
#include "cli/parse/number_check.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

// Shows on stderr what is being measured; stdout has only the results.
class BenchProgress {
 public:
  ~BenchProgress() {
    if (terminal_ && drawn_) fmt::print(stderr, "\r\033[K");
  }
  void operator()(std::string_view what) {
    if (terminal_) {
      fmt::print(stderr, "\r\033[K{} ...", what);
    } else {
      fmt::print(stderr, "{} ...\n", what);
    }
    std::fflush(stderr);
    drawn_ = true;
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) != 0;
  bool drawn_ = false;
};

struct MachineFlags {
  bool json = false;
  bool quick = false;
};

struct KernelFlags {
  bench::KernelOptions options;
  bool json = false;
};

bench::MachineLimits measured_machine(bool quick, BenchProgress& progress,
                                      bench::MachineOptions options = {}) {
  if (quick) options = bench::quick_machine_options();
  options.progress = std::ref(progress);
  return bench::measure_machine(options);
}

void run_machine(const MachineFlags& flags) {
  use_device(DeviceChoice::kAuto);
  bench::MachineLimits machine;
  {
    BenchProgress progress;
    machine = measured_machine(flags.quick, progress);
  }
  if (flags.json) {
    fmt::print("{}\n", bench::report_json(machine, {}));
  } else {
    fmt::print("{}", bench::machine_table(machine));
  }
}

void run_kernels(KernelFlags flags) {
  use_device(DeviceChoice::kAuto);
  bench::MachineLimits machine;
  std::vector<bench::KernelResult> results;
  {
    BenchProgress progress;
    // A short measurement for the summary; each case measures its own limit.
    machine = measured_machine(
        flags.options.quick, progress,
        {.read_bytes = size_t{1} << 30, .passes = 3, .peak_seconds = 0.03, .progress = {}});
    flags.options.progress = std::ref(progress);
    results = bench::bench_kernels(flags.options);
  }
  if (flags.json) {
    fmt::print("{}\n", bench::report_json(machine, results));
  } else {
    fmt::print("{}\n{}", bench::machine_table(machine), bench::kernel_table(results));
  }
}

constexpr auto kQuickHelp =
    "Smoke test with little memory and small shapes; the figures are meaningless";

void add_bench_machine(CLI::App& bench) {
  auto flags = std::make_shared<MachineFlags>();
  CLI::App* command = bench.add_subcommand(
      "machine",
      "Measure this machine's limits: the read bandwidth of memory and caches, and the peak\n"
      "matrix throughput of each instruction set, with one thread and with all threads, and what\n"
      "an empty loop of the compute threads costs. On a Mac also the GPU's read bandwidth and\n"
      "multiply-adds, in its own time. Takes about 20 seconds and 2 GiB of memory.\n"
      "OCTAVO_THREADS sets the number of threads.");
  command->add_flag("--json", flags->json, "Print the results as JSON");
  command->add_flag("--quick", flags->quick, kQuickHelp);
  command->callback([flags] { run_machine(*flags); });
}

void add_bench_kernels(CLI::App& bench) {
  auto flags = std::make_shared<KernelFlags>();
  CLI::App* command = bench.add_subcommand(
      "kernels",
      "Time octavo's kernels on the shapes of Qwen3-0.6B, with cold caches, and compare them\n"
      "with the machine's limit and with MLX's own operations and oneDNN in the same process.\n"
      "Each round measures the limit and the kernel; fractions and ratios are medians over the\n"
      "rounds, so that changes in the machine's speed cancel out.\n\n"
      "  octavo bench kernels --filter \"linear bfloat16\"\n"
      "  octavo bench kernels --filter \"linear 1024x3072 M=1 4-bit\" --repeats 9\n"
      "  OCTAVO_ISA=avx2 octavo bench kernels --filter attention\n\n"
      "Columns: limit is the fraction of the roofline reached, by is the bound that applies (BW:\n"
      "reading the weights or K and V; peak: matrix arithmetic), of BW and of peak are the\n"
      "fractions of each bound, inv. cost is the cost of the fixed summation order compared with\n"
      "a product that is free to choose one.");
  command->add_option("--filter", flags->options.filter,
                      "Run only the cases whose \"op shape dtype\" contains all these words");
  command->add_option("--repeats", flags->options.repeats, "Rounds per case")
      ->transform(whole_number(1, 1000))
      ->capture_default_str();
  command->add_flag("!--no-mlx", flags->options.mlx,
                    "Skip MLX's own operations, which is much faster");
  command->add_flag("--quick", flags->options.quick, kQuickHelp);
  command->add_flag("--json", flags->json, "Print the results as JSON");
  command->callback([flags] { run_kernels(*flags); });
}

}  // namespace

void add_bench_command(CLI::App& app) {
  CLI::App* bench = app.add_subcommand(
      "bench", "Benchmark this machine, octavo's kernels, a model, or a running server");
  bench->require_subcommand(1);
  add_bench_machine(*bench);
  add_bench_kernels(*bench);
  add_bench_model(*bench);
  add_bench_throughput(*bench);
  add_bench_lengths(*bench);
  add_bench_serve(*bench);
}

}  // namespace octavo
