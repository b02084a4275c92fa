// Measures the gain and cost of speculative decoding: the same requests with and without it,
// alternating.
//
// usage: speculation_speed MODEL [--config JSON] [--batch 1] [--rounds 7] [--tokens 200]
//
// Two workloads: "copy" (a text to repeat, greedy) and "story" (nothing to look up, temperature 1).
// Times cover decoding: from an answer's first token to its last, for the slowest answer of a
// round. Prints one JSON line for each; speedup is the median over rounds of the time without
// divided by the time with speculative decoding.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>

#include "llm/llm.h"
#include "support/copying_prompts.h"
#include "support/engine_driver.h"

namespace octavo {
namespace {

struct Options {
  std::string model;
  std::string config;  // empty: the default
  int batch = 1;
  int rounds = 7;
  int tokens = 200;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

EngineOptions engine_options(const Options& options, const SpeculativeConfig& config) {
  return {.max_model_len = 2048,
          .max_num_seqs = std::max(16, options.batch),
          .speculation = config,
          .touch_pages = false};
}

double decode_seconds(Engine& engine, const std::vector<Request>& requests) {
  double slowest = 0;
  for (const DrivenAnswer& answer : answer_all(engine, requests))
    slowest = std::max(slowest, answer.seconds - answer.first_token_seconds);
  return slowest;
}

void race(const Options& options, bool copies, Llm& plain, Llm& speculating) {
  std::mt19937 random(5);
  const SchedulerStats before = speculating.engine().stats().scheduler;
  std::vector<double> ratios;
  double sums[2] = {0, 0};
  for (int round = -1; round < options.rounds; ++round) {  // the first round warms up
    std::vector<Request> requests;
    for (int i = 0; i < options.batch; ++i) {
      const std::string prompt = copies ? copying_prompt(random, 12) : story_prompt(random);
      Request request{.prompt = plain.encode_prompt({.prompt = prompt}),
                      .max_tokens = options.tokens,
                      .ignore_eos = true};
      if (!copies) request.sampling = {.temperature = 1, .seed = random()};
      requests.push_back(std::move(request));
    }
    const bool plain_first = round % 2 == 0;
    double seconds[2];
    for (const bool with : {!plain_first, plain_first})
      seconds[with] = decode_seconds((with ? speculating : plain).engine(), requests);
    if (round < 0) continue;
    ratios.push_back(seconds[0] / seconds[1]);
    for (int i = 0; i < 2; ++i) sums[i] += seconds[i];
  }
  const SchedulerStats after = speculating.engine().stats().scheduler;
  std::cout << nlohmann::json{{"workload", copies ? "copy" : "story"},
                              {"batch", options.batch},
                              {"rounds", options.rounds},
                              {"seconds_without", sums[0]},
                              {"seconds_with", sums[1]},
                              {"speedup", median(ratios)},
                              {"speedups", ratios},
                              {"draft_tokens", after.draft_tokens - before.draft_tokens},
                              {"accepted_tokens", after.accepted_tokens - before.accepted_tokens},
                              {"steps_with", after.steps - before.steps}}
            << std::endl;
}

int run(const Options& options) {
  const SpeculativeConfig config =
      options.config.empty() ? SpeculativeConfig{} : parse_speculative_config(options.config);
  Llm plain(options.model, engine_options(options, {.method = SpeculativeMethod::kNone}), nullptr);
  Llm speculating(options.model, engine_options(options, config), nullptr);
  for (const bool copies : {true, false}) race(options, copies, plain, speculating);
  return 0;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  octavo::Options options;
  CLI::App app("Measures the gain and cost of speculative decoding");
  app.add_option("MODEL", options.model)->required();
  app.add_option("--config", options.config);
  app.add_option("--batch", options.batch);
  app.add_option("--rounds", options.rounds);
  app.add_option("--tokens", options.tokens);
  CLI11_PARSE(app, argc, argv);
  return octavo::run(options);
}
