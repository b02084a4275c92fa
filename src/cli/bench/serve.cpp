// octavo bench serve - load test for any OpenAI-compatible server.
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
  ProgressBar bar("Running", [&](uint64_t done, uint64_t total, double seconds) {
    return fmt::format("{} of {} requests  {:.1f} tok/s", done, total,
                       static_cast<double>(chunks) / seconds);
  });
  return bench::run_load(options, requests, [&](const bench::LoadProgress& progress) {
    chunks = progress.chunks;
    bar.update(progress.done, progress.total);
  });
}

void run(const BenchServeFlags& flags) {
  if (!flags.backend.empty()) {
    fmt::print(stderr, "octavo: --backend {}: ignored; --endpoint selects the API, here {}\n",
               flags.backend, flags.endpoint);
  }
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
      "Send requests to a running server with an OpenAI-compatible API, and report throughput and\n"
      "latency like `vllm bench serve`. Responses are streamed. Input tokens are counted from the\n"
      "dataset, without the chat template; output tokens come from the server's usage. Exits with\n"
      "status 1 if every request failed.\n\n"
      "  octavo bench serve --num-prompts 20 --random-input-len 256 --random-output-len 64\n"
      "  octavo bench serve --dataset-name lengths --dataset-path mix.json --request-rate 10 \\\n"
      "    --max-concurrency 32 --goodput ttft:500 tpot:100\n"
      "  octavo bench serve --endpoint /v1/chat/completions --dataset-name sharegpt \\\n"
      "    --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json --plot load.svg\n\n"
      "TTFT: time from sending a request to its first chunk. ITL: time between chunks with\n"
      "tokens. TPOT: time from the first chunk to the last, divided by the number of tokens after\n"
      "the first. E2EL: time from sending a request to its last chunk. Peaks are per whole\n"
      "second, so the peak of concurrent requests can exceed the number open at any one moment.");
  flags->add_to(*command);
  command->callback([flags] { run(*flags); });
}

}  // namespace octavo
