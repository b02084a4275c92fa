// Memory under a long mixed load: compares resident memory after the last request with that after
// the first tenth, and with the plan.
//
// usage: soak MODEL [REQUESTS LONGEST]
// Random lengths, sampling modes, choices and aborts, up to 64 at once. Prints one JSON line; exits
// with status 1 if memory grew by more than 2% or exceeded the plan.
#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/system_memory.h"
#include "support/engine_driver.h"

namespace octavo {
namespace {

Request random_request(std::mt19937& random, int vocab, int longest) {
  const auto draw = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Request request{.prompt = random_tokens(random, draw(1, longest), vocab)};
  request.max_tokens = draw(1, longest / 2);
  request.ignore_eos = true;
  request.n = draw(1, 10) == 1 ? 2 : 1;
  if (draw(1, 2) == 1) {
    request.sampling = {.temperature = 0.8f, .top_p = 0.95f, .seed = random()};
    request.sampling.repetition_penalty = draw(1, 3) == 1 ? 1.1f : 1.0f;
  }
  if (draw(1, 5) == 1) request.sampling.logprobs = 5;
  if (draw(1, 20) == 1) request.sampling.prompt_logprobs = 1;
  return request;
}

int run(const std::string& model, int count, int longest) {
  EngineDriver driver(model, {});  // as in a server
  Engine& engine = driver.engine();
  std::mt19937 random(7);
  std::atomic<int> open = 0;
  uint64_t early = 0;
  std::vector<uint64_t> resident;  // MiB, after every tenth
  for (int i = 0; i < count; ++i) {
    while (open >= 64) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    Request request = random_request(random, engine.model().plan.vocab, longest);
    open += request.n;
    const RequestId id = engine.submit(std::move(request),
                                       [&](Update update) { open -= update.finish.has_value(); });
    if (random() % 10 == 0) engine.abort(id);
    if (i == count / 10) early = resident_bytes();
    if (i % (count / 10) == 0) resident.push_back(resident_bytes() >> 20);
  }
  engine.wait_until_idle(std::chrono::hours(1));
  const uint64_t late = resident_bytes();
  const uint64_t plan = engine.memory().total_bytes();
  const double growth = static_cast<double>(late) / static_cast<double>(early) - 1;
  std::cout << nlohmann::json{{"requests", count},
                              {"resident_after_a_tenth", early},
                              {"resident_at_the_end", late},
                              {"growth_percent", growth * 100},
                              {"resident_mib", resident},
                              {"plan_bytes", plan},
                              {"step_peak_bytes", engine.step_peak_bytes()},
                              {"step_planned_bytes", engine.memory().step_bytes},
                              {"generated_tokens", engine.stats().scheduler.generated_tokens},
                              {"preemptions", engine.stats().scheduler.preemptions}}
            << "\n";
  return growth <= 0.02 && late <= plan ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) return 2;
  const int count = argc == 4 ? std::stoi(argv[2]) : 2000;
  const int longest = argc == 4 ? std::stoi(argv[3]) : 200;
  return octavo::run(argv[1], count, longest);
}
