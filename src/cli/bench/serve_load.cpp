#include "cli/bench/serve_load.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "bench/load/http_call.h"
#include "bench/load/id_requests.h"
#include "bench/load/sharegpt.h"
#include "bench/throughput.h"
#include "cli/model_by_name.h"
#include "generation/model_text.h"
#include "llm/load_model_text.h"

namespace octavo {
namespace {

using nlohmann::json;

constexpr int kDefaultPrompts = 100;

std::string first_model(const BenchServeFlags& flags, const bench::ServerUrl& url) {
  const bench::HttpReply reply = bench::http_call(
      url, {.path = "/v1/models", .api_key = flags.api_key, .timeout_seconds = 30});
  if (!reply.ok()) {
    throw SetupError(
        fmt::format("{} does not list its models ({}); check that the server is running and "
                    "--base-url is right",
                    flags.base_url, bench::reason_of(reply)));
  }
  try {
    return json::parse(reply.body).at("data").at(0).at("id").get<std::string>();
  } catch (const json::exception&) {
    throw SetupError(fmt::format("{}/v1/models lists no model; give --model", flags.base_url));
  }
}

bench::CountTokens count_here(const std::string& model) {
  const auto tokenizer =
      load_model_text(Checkpoint::open(find_model_by_name(model).path)).tokenizer;
  return [tokenizer](const std::string& text) {
    return static_cast<int>(tokenizer->encode(text, true).size());
  };
}

// vLLM's /tokenize, which octavo has too.
bench::CountTokens count_there(const BenchServeFlags& flags, const bench::ServerUrl& url,
                               const std::string& model) {
  return [&flags, url, model](const std::string& text) {
    const json ask = {{"model", model}, {"prompt", text}, {"add_special_tokens", true}};
    const bench::HttpReply reply =
        bench::http_call(url, {.path = "/tokenize",
                               .json = ask.dump(-1, ' ', false, json::error_handler_t::replace),
                               .api_key = flags.api_key,
                               .timeout_seconds = 60});
    const json answer = json::parse(reply.body, nullptr, false);
    if (!reply.ok() || !answer.is_object() || !answer.contains("count") ||
        !answer["count"].is_number_integer()) {
      throw SetupError(fmt::format(
          "{}/tokenize does not count tokens ({}); give --tokenizer MODEL to count them locally",
          flags.base_url, reply.ok() ? "no count in the response" : bench::reason_of(reply)));
    }
    return answer["count"].get<int>();
  };
}

std::vector<bench::LoadRequest> sharegpt(const BenchServeFlags& flags, const bench::ServerUrl& url,
                                         const std::string& model) {
  const auto count_tokens =
      flags.tokenizer.empty() ? count_there(flags, url, model) : count_here(flags.tokenizer);
  auto requests = bench::sharegpt_requests(
      bench::read_sharegpt(flags.dataset_path),
      {.count = static_cast<size_t>(flags.num_prompts.value_or(kDefaultPrompts)),
       .seed = flags.seed,
       .output_tokens = flags.sharegpt_output_len},
      count_tokens);
  if (requests.empty()) {
    throw SetupError(fmt::format("{} has no conversation of a usable length", flags.dataset_path));
  }
  // Repeating prompts would cause unintended prefix cache hits.
  if (flags.num_prompts && requests.size() < static_cast<size_t>(*flags.num_prompts)) {
    throw SetupError(fmt::format("{} has {} conversations of a usable length; lower --num-prompts",
                                 flags.dataset_path, requests.size()));
  }
  return requests;
}

std::vector<bench::MixRequest> lengths_of(const BenchServeFlags& flags) {
  if (flags.dataset_name == "random") {
    return std::vector<bench::MixRequest>(
        static_cast<size_t>(flags.num_prompts.value_or(kDefaultPrompts)),
        {.prompt_tokens = flags.random_input_len, .output_tokens = flags.random_output_len});
  }
  std::vector<bench::MixRequest> lengths = bench::read_request_mix(flags.dataset_path);
  if (lengths.empty()) throw SetupError(fmt::format("{}: no requests", flags.dataset_path));
  const size_t given = lengths.size();
  lengths.resize(flags.num_prompts ? static_cast<size_t>(*flags.num_prompts) : given);
  for (size_t i = given; i < lengths.size(); ++i) lengths[i] = lengths[i - given];
  return lengths;
}

}  // namespace

void wait_until_ready(const BenchServeFlags& flags, const bench::ServerUrl& url) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(flags.ready_timeout_seconds);
  for (;;) {
    const bench::HttpReply reply =
        bench::http_call(url, {.path = "/health", .api_key = flags.api_key, .timeout_seconds = 5});
    if (reply.status > 0 && reply.status < 500) return;
    if (Clock::now() >= deadline) {
      throw SetupError(fmt::format("{} is not ready after {} s: {}", flags.base_url,
                                   flags.ready_timeout_seconds, bench::reason_of(reply)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
}

bench::LoadOptions load_options(const BenchServeFlags& flags, const bench::ServerUrl& url) {
  return {.url = url,
          .endpoint = flags.endpoint,
          .api_key = flags.api_key,
          .body = {.model = flags.model.empty() ? first_model(flags, url) : flags.model,
                   .chat = flags.chat(),
                   .ignore_eos = flags.ignore_eos.value_or(flags.ids()),
                   .temperature = flags.temperature},
          .max_concurrency = flags.max_concurrency,
          .timeout_seconds = flags.timeout_seconds};
}

std::vector<bench::LoadRequest> load_requests(const BenchServeFlags& flags,
                                              const bench::ServerUrl& url,
                                              const std::string& model) {
  const bool from_file = flags.dataset_name == "sharegpt" || flags.dataset_name == "lengths";
  if (from_file && flags.dataset_path.empty())
    throw SetupError(fmt::format("--dataset-name {} needs --dataset-path", flags.dataset_name));
  if (flags.chat() && flags.ids()) {
    throw SetupError(fmt::format(
        "--dataset-name {} has token ids as prompts, which {} does not accept; use /v1/completions "
        "or --dataset-name sharegpt",
        flags.dataset_name, flags.endpoint));
  }
  const bench::IdRange ids{.end = flags.vocab_size};
  if (flags.dataset_name == "sharegpt") return sharegpt(flags, url, model);
  if (flags.dataset_name != "shared-prefix")
    return bench::random_id_requests(lengths_of(flags), ids, flags.seed);
  return bench::shared_prefix_requests({.requests = flags.num_prompts.value_or(kDefaultPrompts),
                                        .groups = flags.shared_prefix_groups,
                                        .prefix_tokens = flags.shared_prefix_len,
                                        .suffix_tokens = flags.shared_suffix_len,
                                        .output_tokens = flags.random_output_len},
                                       ids, flags.seed);
}

}  // namespace octavo
