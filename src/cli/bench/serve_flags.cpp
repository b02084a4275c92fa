#include "cli/bench/serve_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "bench/load/id_requests.h"
#include "cli/option_group.h"
#include "cli/parse/number_check.h"

namespace octavo {
namespace {

// real_number() rejects infinity.
const CLI::Validator kPositiveOrInf(
    [](std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && value > 0 ? std::string()
                                                                 : "must be above 0, or inf";
    },
    "POSITIVE or inf");

void add_server_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "Server"};
  command
      .add_option("--backend", flags.backend,
                  "Accepted for vLLM's command lines and ignored: --endpoint selects the API")
      ->group(option.heading)
      ->check(CLI::IsMember({"vllm", "openai", "openai-chat"}));
  option("--base-url", flags.base_url, "Base URL of the server, http://host:port");
  option("--endpoint", flags.endpoint, "API path: /v1/completions or /v1/chat/completions");
  option("--model", flags.model, "Model name on the server (default: the first in /v1/models)");
  option("--api-key", flags.api_key, "API key, sent as a bearer token")->envname("OPENAI_API_KEY");
  option("--timeout", flags.timeout_seconds, "Timeout of a request in seconds")
      ->transform(real_number(0, false));
  option("--ready-timeout", flags.ready_timeout_seconds,
         "Wait up to this many seconds until the server responds on /health")
      ->transform(real_number(0, true));
}

void add_dataset_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "Requests"};
  option("--dataset-name", flags.dataset_name,
         "random: prompts of equal length. lengths: a file as for octavo bench throughput.\n"
         "shared-prefix: prompts with a common prefix. sharegpt: conversations; the only dataset\n"
         "with text, which the chat endpoint requires")
      ->check(CLI::IsMember({"random", "lengths", "shared-prefix", "sharegpt"}));
  option("--dataset-path", flags.dataset_path, "JSON file for the datasets lengths and sharegpt");
  command
      .add_option(
          "--num-prompts", flags.num_prompts,
          "Number of requests (default: 100, or all of the dataset lengths, which is repeated "
          "if it has fewer)")
      ->group(option.heading)
      ->transform(whole_number(1));
  option("--random-input-len", flags.random_input_len, "Tokens per random prompt")
      ->transform(whole_number(1));
  option("--random-output-len", flags.random_output_len,
         "Output tokens per request, for random and shared-prefix")
      ->transform(whole_number(1));
  command
      .add_option("--sharegpt-output-len", flags.sharegpt_output_len,
                  "Output tokens per request, for sharegpt (default: those of the answer in the "
                  "file)")
      ->group(option.heading)
      ->transform(whole_number(1));
  option("--shared-prefix-len", flags.shared_prefix_len, "Tokens in the shared prefix")
      ->transform(whole_number(0));
  option("--shared-suffix-len", flags.shared_suffix_len,
         "Tokens after the prefix, different in each prompt")
      ->transform(whole_number(1));
  option("--shared-prefix-groups", flags.shared_prefix_groups, "Number of different prefixes")
      ->transform(whole_number(1));
  option("--vocab-size", flags.vocab_size, "Random token ids are at least 100 and below this")
      ->transform(whole_number(bench::IdRange{}.first + 1));
  option("--tokenizer", flags.tokenizer,
         "Model whose tokenizer counts the tokens of sharegpt (default: the server's /tokenize)");
  command
      .add_flag_function(
          "--ignore-eos,!--no-ignore-eos",
          [&flags](int64_t count) { flags.ignore_eos = count > 0; },
          "Generate the full number of output tokens (default: on, except for sharegpt)")
      ->group(option.heading);
  option("--temperature", flags.temperature,
         "Sampling temperature; 0 always picks the most likely token")
      ->transform(real_number(0, true));
}

void add_load_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "Load"};
  option("--request-rate", flags.request_rate,
         "Requests per second with Poisson arrivals; inf sends all at once")
      ->check(kPositiveOrInf);
  option(
      "--max-concurrency", flags.max_concurrency,
      "Maximum number of open requests; further ones wait unsent, and the wait is not counted in\n"
      "their latency. 0: no limit. With an infinite rate this is a closed loop")
      ->transform(whole_number(0));
  option("--seed", flags.seed,
         "Random seed for arrivals, token ids and the choice of conversations; for sharegpt, vLLM\n"
         "picks the same ones in the same order");
}

void add_report_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "Report"};
  option("--percentiles,--metric-percentiles", flags.percentiles,
         "Percentiles to report, a list like 50,90,99")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->transform(real_number(0, true, 100));
  option("--percentile-metrics", flags.metrics, "Metrics to report: any of ttft,tpot,itl,e2el")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"ttft", "tpot", "itl", "e2el"}));
  command
      .add_option("--goodput", flags.goodput,
                  "Latency limits of a good request in milliseconds: ttft:500 tpot:100 e2el:10000")
      ->group(option.heading);
  option("--plot", flags.plot,
         "Write an SVG chart of TTFT and output tokens over time to this file");
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print the results as one JSON object")
          ->group(option.heading);
  command.add_flag("--save-detailed", flags.save_detailed, "Add one entry per request to the JSON")
      ->group(option.heading)
      ->needs(json);
}

}  // namespace

void BenchServeFlags::add_to(CLI::App& command) {
  add_server_flags(command, *this);
  add_dataset_flags(command, *this);
  add_load_flags(command, *this);
  add_report_flags(command, *this);
}

bench::ServiceLevel BenchServeFlags::service_level() const {
  bench::ServiceLevel level;
  for (const std::string& bound : goodput) {
    const std::string name = bound.substr(0, bound.find(':'));
    const std::string number = bound.substr(std::min(bound.size(), name.size() + 1));
    double milliseconds = 0;
    const bool is_number = CLI::detail::lexical_cast(number, milliseconds) && milliseconds >= 0;
    std::optional<double>* field = name == "ttft"   ? &level.ttft
                                   : name == "tpot" ? &level.tpot
                                   : name == "e2el" ? &level.e2el
                                                    : nullptr;
    if (field == nullptr || !is_number) {
      throw SetupError(fmt::format(
          "--goodput {}: expected ttft, tpot or e2el and milliseconds, like ttft:500", bound));
    }
    *field = milliseconds / 1e3;
  }
  return level;
}

}  // namespace octavo
