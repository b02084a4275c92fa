// A step fails on the device: every sequence in it runs again alone, the one that fails again is
// ended, and the others finish with the bits of a run without it.
//
// usage: recovery MODEL
// Prints one JSON line; exits with status 1 if another request's bits differ or the failing request
// is not ended.
#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "support/engine_driver.h"

namespace octavo {
namespace {

constexpr uint64_t kPoisonSeed = 666;
constexpr int kNeighbours = 6;

bool is_poisoned(const Batch& batch) {
  return std::ranges::any_of(batch.sampling, [](const RowSampling& row) {
    // From its fifth token on, so that it shares a batch and holds pages when it fails.
    return row.seed == kPoisonSeed && row.position >= 25;
  });
}

std::vector<Request> requests_for(int vocab) {
  std::mt19937 random(3);
  std::vector<Request> requests;
  for (int i = 0; i <= kNeighbours; ++i) {
    Request request{.prompt = random_tokens(random, 20, vocab)};
    request.max_tokens = 40;
    request.hash_logits = true;
    request.sampling = {.temperature = 0.8f, .seed = static_cast<uint64_t>(i)};
    requests.push_back(request);
  }
  requests.back().sampling.seed = kPoisonSeed;
  return requests;
}

int run(const std::string& model) {
  const EngineOptions plain{.max_model_len = 256, .touch_pages = false};
  EngineOptions poisoned = plain;
  poisoned.fails = is_poisoned;
  std::vector<DrivenAnswer> expected, answers;
  uint64_t failed_steps = 0;
  int held = 0;
  {
    EngineDriver driver(model, plain);
    expected = driver.run(requests_for(driver.engine().model().plan.vocab));
  }
  {
    EngineDriver driver(model, poisoned);
    answers = driver.run(requests_for(driver.engine().model().plan.vocab));
    const EngineStats stats = driver.engine().stats();
    failed_steps = stats.scheduler.failed_steps;
    held = stats.referenced_pages;
  }
  int different = 0;
  for (size_t i = 0; i < kNeighbours; ++i) different += !answers[i].same_bits(expected[i]);
  const bool ended = answers.back().finish == FinishReason::kError;
  std::cout << nlohmann::json{{"neighbours", kNeighbours},
                              {"different", different},
                              {"poisoned_ended_with_error", ended},
                              {"poisoned_tokens", answers.back().tokens.size()},
                              {"failed_steps", failed_steps},
                              {"pages_held_at_the_end", held}}
            << "\n";
  return different == 0 && ended && failed_steps >= 2 && held == 0 ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  return octavo::run(argv[1]);
}
