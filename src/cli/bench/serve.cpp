// octavo bench serve - a load of requests for any OpenAI-compatible server, and how it copes.
#include <fmt/format.h>

#include <memory>

#include "bench/load/arrivals.h"
#include "bench/load/load_plot.h"
#include "cli/bench/commands.h"
#include "cli/bench/serve_load.h"
#include "cli/bench/serve_report.h"
#include "cli/progress_bar.h"

namespace octavo {
namespace {

bench::LoadResult measure(const bench::LoadOptions& options,
                          const std::vector<bench::LoadRequest>& requests) {
  uint64_t chunks = 0;
  ProgressBar bar("Answering", [&](uint64_t done, uint64_t total, double seconds) {
    return fmt::format("{} of {} requests  {:.1f} tok/s", done, total,
                       static_cast<double>(chunks) / seconds);
  });
  return bench::run_load(options, requests, [&](const bench::LoadProgress& progress) {
    chunks = progress.chunks;
    bar.update(progress.done, progress.total);
  });
}

void run(const BenchServeFlags& flags) {
  const bench::ServiceLevel level = flags.service_level();
  const bench::ServerUrl url = bench::parse_server_url(flags.base_url);
  if (flags.ready_timeout_seconds > 0) wait_until_ready(flags, url);
  bench::LoadOptions options = load_options(flags, url);
  const auto requests = load_requests(flags, url, options.body.model);
  options.arrivals = bench::poisson_arrivals(requests.size(), flags.request_rate, flags.seed);
  const bench::LoadResult result = measure(options, requests);
  const bench::LoadFigures figures = bench::load_figures(result, flags.percentiles, level);
  const BenchServeReport report{
      .flags = flags, .model = options.body.model, .result = result, .figures = figures};
  if (flags.json) {
    fmt::print("{}\n", bench_serve_json(report));
  } else {
    fmt::print("{}", bench_serve_table(report));
  }
  if (!flags.plot.empty()) bench::write_load_plot(result, flags.plot);
  if (figures.completed == 0) throw CLI::RuntimeError(1);
}

}  // namespace

void add_bench_serve(CLI::App& bench) {
  auto flags = std::make_shared<BenchServeFlags>();
  CLI::App* command = bench.add_subcommand(
      "serve",
      "Send requests to a running server that speaks OpenAI's HTTP API, and show throughput and\n"
      "latencies as `vllm bench serve` does. Answers are streamed. Input tokens are the "
      "dataset's,\n"
      "without what a chat template adds; output tokens are those of the server's usage. Ends "
      "with\n"
      "status 1 when every request failed.\n\n"
      "  octavo bench serve --num-prompts 20 --random-input-len 256 --random-output-len 64\n"
      "  octavo bench serve --dataset-name lengths --dataset-path mix.json --request-rate 10 \\\n"
      "    --max-concurrency 32 --goodput ttft:500 tpot:100\n"
      "  octavo bench serve --endpoint /v1/chat/completions --dataset-name sharegpt \\\n"
      "    --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --plot load.svg\n\n"
      "TTFT: from sending to the first chunk. ITL: between chunks with tokens. TPOT: from the "
      "first\n"
      "chunk to the last, by the tokens behind the first. E2EL: from sending to the last chunk.\n"
      "Peaks are of whole seconds, so requests open in the same second may be more than were open\n"
      "at the same time.");
  flags->add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
