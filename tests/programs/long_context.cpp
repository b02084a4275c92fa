// Measures the time per token as the context grows: one prompt of TOKENS tokens in chunks, with
// single tokens decoded at every eighth of it.
//
// usage: long_context MODEL [TOKENS]
// Prints a table: context, prefill time per token over the last eighth, decode time per token.
#include <cstdio>
#include <string>

#include "support/engine_driver.h"

namespace octavo {
namespace {

constexpr int kDecoded = 16;

int run(const std::string& model, int tokens) {
  EngineDriver driver(model, {.max_model_len = tokens + 2 * kDecoded});
  std::mt19937 random(1);
  const auto prompt = random_tokens(random, tokens, driver.engine().model().plan.vocab);
  std::printf("%10s %22s %20s\n", "context", "prefill us per token", "decode ms per token");
  bool reused = true;
  for (int eighth = 1; eighth <= 8; ++eighth) {
    const int length = tokens / 8 * eighth;
    Request request{.prompt = {prompt.begin(), prompt.begin() + length}};
    request.max_tokens = kDecoded;
    request.ignore_eos = true;
    const DrivenAnswer answer = driver.run_one(request);
    const int computed = length - answer.cached_tokens;
    std::printf("%10d %22.1f %20.2f\n", length, answer.first_token_seconds / computed * 1e6,
                (answer.seconds - answer.first_token_seconds) / (kDecoded - 1) * 1e3);
    std::fflush(stdout);
    // Otherwise the prefill column would cover the whole prompt.
    reused = reused && (eighth == 1 || answer.cached_tokens > 0);
  }
  return reused ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  return octavo::run(argv[1], argc == 3 ? std::stoi(argv[2]) : 32768);
}
