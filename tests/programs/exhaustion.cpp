// Exhausts the pool: 64 requests of 512 tokens with pages for 8 of them. All finish with the bits
// of a run with enough pages, and no page is lost.
//
// usage: exhaustion MODEL [REQUESTS TOKENS FIT]
// Prints one JSON line; exits with status 1 if an answer differs, nothing was preempted or a page
// is missing.
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/plan_engine.h"
#include "support/engine_driver.h"

namespace octavo {
namespace {

struct Load {
  int requests = 64;
  int tokens = 512;  // prompt and answer
  int fit = 8;
};

int run(const std::string& model, const Load& load) {
  EngineOptions roomy{.max_model_len = load.tokens, .touch_pages = false};
  const Checkpoint checkpoint = Checkpoint::open(model);
  const ModelDescription description = describe_model(checkpoint, std::nullopt);
  const CachePlan cache = plan_engine_cache(description, roomy);
  const auto bytes_for = [&](int sequences) {
    return static_cast<uint64_t>(cache.pages_for(load.tokens)) * cache.bytes_per_page_id() *
           static_cast<uint64_t>(sequences);
  };
  roomy.kv_bytes = bytes_for(load.requests);
  EngineOptions tight = roomy;
  tight.kv_bytes = bytes_for(load.fit);

  std::mt19937 random(5);
  std::vector<Request> requests;
  for (int i = 0; i < load.requests; ++i) {
    const int prompt = std::uniform_int_distribution<int>(load.tokens / 8, load.tokens / 2)(random);
    Request request{.prompt = random_tokens(random, prompt, description.plan.vocab)};
    request.max_tokens = load.tokens - prompt;
    request.ignore_eos = true;
    request.hash_logits = true;
    requests.push_back(request);
  }
  const auto expected = EngineDriver(model, roomy).run(requests);
  EngineDriver driver(model, tight);
  const auto answers = driver.run(requests);
  const EngineStats stats = driver.engine().stats();
  int different = 0;
  for (size_t i = 0; i < answers.size(); ++i) different += !answers[i].same_bits(expected[i]);
  const bool no_page_lost = stats.referenced_pages == 0;
  std::cout << nlohmann::json{{"requests", load.requests},
                              {"tokens_each", load.tokens},
                              {"pages", stats.page_count},
                              {"different", different},
                              {"preemptions", stats.scheduler.preemptions},
                              {"rows_computed",
                               stats.scheduler.prompt_tokens + stats.scheduler.decode_tokens},
                              {"pages_held_at_the_end", stats.referenced_pages}}
            << "\n";
  return different == 0 && stats.scheduler.preemptions > 0 && no_page_lost ? 0 : 1;
}

}  // namespace
}  // namespace octavo

int main(int argc, char** argv) {
  if (argc != 2 && argc != 5) return 2;
  octavo::Load load;
  if (argc == 5) load = {std::stoi(argv[2]), std::stoi(argv[3]), std::stoi(argv[4])};
  return octavo::run(argv[1], load);
}
