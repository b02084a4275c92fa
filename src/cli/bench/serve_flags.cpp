#include "cli/bench/serve_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "bench/load/id_requests.h"
#include "cli/option_group.h"

namespace octavo {
namespace {

// CLI::PositiveNumber has a largest number, which infinity is above.
const CLI::Validator kPositiveOrInf(
    [](std::string& text) {
      double value = 0;
      return CLI::detail::lexical_cast(text, value) && value > 0 ? std::string()
                                                                 : "must be above 0, or inf";
    },
    "POSITIVE or inf");

void add_server_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "The server"};
  option("--base-url", flags.base_url, "http://host:port");
  option("--endpoint", flags.endpoint, "/v1/completions or /v1/chat/completions");
  option("--model", flags.model, "Its name on the server; default: the first of /v1/models");
  option("--api-key", flags.api_key, "Sent as a bearer token")->envname("OPENAI_API_KEY");
  option("--timeout", flags.timeout_seconds, "Seconds a request may take")
      ->check(CLI::PositiveNumber);
  option("--ready-timeout", flags.ready_timeout_seconds,
         "Wait up to this many seconds for the server to answer /health")
      ->check(CLI::NonNegativeNumber);
}

void add_dataset_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "The requests"};
  option("--dataset-name", flags.dataset_name,
         "random: equal lengths. lengths: a file as for octavo bench throughput. shared-prefix:\n"
         "prompts that begin alike. sharegpt: conversations, the only one with text, which chat "
         "needs")
      ->check(CLI::IsMember({"random", "lengths", "shared-prefix", "sharegpt"}));
  option("--dataset-path", flags.dataset_path, "The JSON file of lengths or sharegpt");
  command
      .add_option("--num-prompts", flags.num_prompts,
                  "Requests; default: 100, or as many as lengths has, which start over when more "
                  "are asked for")
      ->group(option.heading)
      ->check(CLI::PositiveNumber);
  option("--random-input-len", flags.random_input_len, "Tokens of a random prompt")
      ->check(CLI::PositiveNumber);
  option("--random-output-len", flags.random_output_len,
         "Tokens of an answer, for random and shared-prefix")
      ->check(CLI::PositiveNumber);
  option("--shared-prefix-len", flags.shared_prefix_len, "Tokens that prompts begin alike with")
      ->check(CLI::NonNegativeNumber);
  option("--shared-suffix-len", flags.shared_suffix_len, "Tokens behind that, of each its own")
      ->check(CLI::PositiveNumber);
  option("--shared-prefix-groups", flags.shared_prefix_groups, "Different beginnings")
      ->check(CLI::PositiveNumber);
  option("--vocab-size", flags.vocab_size, "Random ids are from 100 to below this")
      ->check(CLI::Range(bench::IdRange{}.first + 1, std::numeric_limits<int>::max()));
  option("--tokenizer", flags.tokenizer,
         "A model file or folder whose tokenizer counts the tokens of sharegpt; default: the\n"
         "server's /tokenize");
  command
      .add_flag_function(
          "--ignore-eos,!--no-ignore-eos",
          [&flags](int64_t count) { flags.ignore_eos = count > 0; },
          "Answers go on to the length asked for; default: yes, but not with sharegpt")
      ->group(option.heading);
  option("--temperature", flags.temperature, "0: always the likeliest token")
      ->check(CLI::NonNegativeNumber);
}

void add_load_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "The load"};
  option("--request-rate", flags.request_rate,
         "Requests per second, at random times (Poisson); inf: all at once")
      ->check(kPositiveOrInf);
  option("--max-concurrency", flags.max_concurrency,
         "Requests open at the same time, at most; the others wait unsent, and their clocks have\n"
         "not started. 0: no bound. With an infinite rate this is a closed loop")
      ->check(CLI::NonNegativeNumber);
  option("--seed", flags.seed, "Of arrivals, random ids and the choice from sharegpt");
}

void add_report_flags(CLI::App& command, BenchServeFlags& flags) {
  const OptionGroup option{command, "The report"};
  option("--percentiles,--metric-percentiles", flags.percentiles, "A list like 50,90,99")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(0.0, 100.0));
  option("--percentile-metrics", flags.metrics, "Sections of the table, of ttft,tpot,itl,e2el")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"ttft", "tpot", "itl", "e2el"}));
  command
      .add_option("--goodput", flags.goodput,
                  "Bounds in milliseconds a good request keeps: ttft:500 tpot:100 e2el:10000")
      ->group(option.heading);
  option("--plot", flags.plot, "Write an SVG of TTFT and output tokens over time");
  CLI::Option* json =
      command.add_flag("--json", flags.json, "Print all figures as one JSON object")
          ->group(option.heading);
  command.add_flag("--save-detailed", flags.save_detailed, "A row for each request in the JSON")
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
