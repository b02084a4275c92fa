// Requests with a shared prefix: the prefix is computed once, and later requests have a short TTFT.
//
// usage: shared_prefix MODEL [PREFIX REQUESTS]
// Runs one request alone, then the others one after the other (for the times), then as many new
// ones at once with another prefix. Prints one JSON line; exits with status 1 if more prompt rows
// were computed than prefix + suffixes + one block each, or if the answers differ from those
// without a cache.
#include <iostream>
#include <nlohmann/json.hpp>

#include "support/engine_driver.h"

namespace octavo {
namespace {

constexpr int kOwnTokens = 20;

std::vector<Request> requests_for(int prefix, int count, int vocab, unsigned seed) {
  std::mt19937 random(seed);
  const auto shared = random_tokens(random, prefix, vocab);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request{.prompt = shared};
    const auto own = random_tokens(random, kOwnTokens, vocab);
    request.prompt.insert(request.prompt.end(), own.begin(), own.end());
    request.max_tokens = 4;
    request.ignore_eos = true;
    request.hash_logits = true;
    requests.push_back(request);
  }
  return requests;
}

int run(const std::string& model, int prefix, int count) {
  const EngineOptions options{.max_model_len = prefix + 100};
  EngineOptions uncached = options;
  uncached.enable_prefix_caching = false;
  EngineDriver driver(model, options);
  const int vocab = driver.engine().model().plan.vocab;
  const auto one_by_one = requests_for(prefix, count, vocab, 1);
  const auto at_once = requests_for(prefix, count, vocab, 2);
  const auto bound = static_cast<uint64_t>(prefix + count * (kOwnTokens + options.block_tokens));

  std::vector<DrivenAnswer> first_answers;
  double later = 0;
  for (const auto& request : one_by_one) {
    first_answers.push_back(driver.run_one(request));
    if (first_answers.size() > 1) later += first_answers.back().first_token_seconds / (count - 1);
  }
  const uint64_t rows_one_by_one = driver.engine().stats().scheduler.prompt_tokens;
  const auto second_answers = driver.run(at_once);
  const uint64_t rows_at_once = driver.engine().stats().scheduler.prompt_tokens - rows_one_by_one;

  int different = 0;
  EngineDriver plain(model, uncached);
  for (size_t i = 0; i < 3; ++i) {
    different += !plain.run_one(one_by_one[i]).same_bits(first_answers[i]);
    different += !plain.run_one(at_once[i]).same_bits(second_answers[i]);
  }
  const double first = first_answers[0].first_token_seconds;
  std::cout << nlohmann::json{{"prefix", prefix},
                              {"requests", count},
                              {"prompt_rows_one_by_one", rows_one_by_one},
                              {"prompt_rows_at_once", rows_at_once},
                              {"prompt_rows_allowed", bound},
                              {"first_ttft_ms", first * 1e3},
                              {"later_ttft_ms", later * 1e3},
                              {"later_of_first_percent", later / first * 100},
                              {"different_from_uncached", different}}
            << "\n";
  return rows_one_by_one <= bound && rows_at_once <= bound && different == 0 ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return 2;
  const int prefix = argc == 4 ? std::stoi(argv[2]) : 1500;
  const int count = argc == 4 ? std::stoi(argv[3]) : 50;
  return octavo::run(argv[1], prefix, count);
}
