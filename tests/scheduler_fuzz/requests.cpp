#include "scheduler_fuzz/requests.h"

#include <fmt/format.h>

#include <array>

#include "scheduler/testing/fake_model.h"
#include "scheduler/testing/toy_constraint.h"
#include "scheduler_fuzz/images.h"
#include "scheduler_fuzz/settings.h"

namespace octavo {
namespace {

constexpr int kAdapters = 5;

}  // namespace

// Few prefixes, so that many prompts share one.
std::vector<TokenId> FuzzRequests::prompt() {
  const int length = draw(
      1, options_.whole_prompts ? options_.longest_whole_prompt() : options_.max_model_len - 1);
  const int shared = draw(0, length);
  const auto family = static_cast<unsigned>(draw(0, 3));
  std::vector<TokenId> tokens;
  for (int i = 0; i < length; ++i) {
    tokens.push_back(
        i < shared ? static_cast<TokenId>((family * 7 + static_cast<unsigned>(i)) % kFuzzVocab)
                   : draw(0, kFuzzVocab - 1));
  }
  return tokens;
}

Request FuzzRequests::next() {
  Request request;
  request.prompt = prompt();
  request.n = chance(15) && !options_.whole_prompts ? draw(2, 4) : 1;
  request.max_tokens = draw(1, 80);
  if (chance(20)) request.min_tokens = draw(0, request.max_tokens);
  if (chance(20)) request.stop_token_ids = {draw(0, kFuzzVocab - 1)};
  request.ignore_eos = chance(60);
  request.priority = draw(-1, 1);
  request.background = chance(25);
  if (chance(20)) request.cache_salt = chance(50) ? "a" : "b";
  if (chance(50)) request.owner = chance(50) ? "a" : "b";
  // Some requests are part of one of the last calls.
  if (chance(40)) request.call = next_call_ - static_cast<uint64_t>(draw(1, 3));
  if (chance(20)) ++next_call_;
  if (chance(20)) request.cache_namespace[0] = 1;
  if (options_.adapter_slots > 0 && chance(70))
    request.adapter = adapters_[static_cast<size_t>(draw(0, kAdapters - 1))];
  if (chance(50)) request.sampling.temperature = 1;
  request.sampling.seed = draws_.number();
  if (chance(10)) request.sampling.prompt_logprobs = 0;
  if (chance(15)) request.sampling.repetition_penalty = 2;
  if (chance(15)) request.sampling.logprobs = 0;
  request.hash_logits = chance(15);
  if (options_.images.enabled && chance(60))
    totals_.images += add_random_images(draws_, options_.images, request);
  if (request.n == 1 && request.images.empty() && (options_.whole_prompts || chance(20)))
    request.pooling = std::array{Pooling::kMean, Pooling::kLast,
                                 Pooling::kFirst}[static_cast<size_t>(draw(0, 2))];
  const auto length = static_cast<int>(request.prompt.size());
  if (options_.whole_prompts && length > 1 && chance(40)) request.second_text = draw(1, length - 1);
  if (request.pooling == Pooling::kNone && chance(35)) {
    request.constraint =
        std::make_shared<ToyConstraint>(ToyRules{.vocab = kFuzzVocab,
                                                 .stop = kFuzzStop,
                                                 .length = draw(1, 50),
                                                 .fails_at = chance(15) ? draw(0, 20) : -1,
                                                 .closed = chance(80)});
  }
  return request;
}

// Two of them have one name, as after a reload.
std::vector<std::shared_ptr<const Adapter>> FuzzRequests::make_adapters() {
  std::vector<std::shared_ptr<const Adapter>> adapters;
  for (int i = 0; i < kAdapters; ++i) {
    const auto id = static_cast<uint64_t>(i + 1);
    Sha256Digest digest = {};
    digest[0] = static_cast<uint8_t>(i);
    adapters.push_back(
        std::make_shared<const Adapter>(id, fmt::format("adapter {}", i / 2), digest));
  }
  return adapters;
}

std::map<CacheNamespace, uint64_t> FuzzRequests::effects_of_adapters() const {
  std::map<CacheNamespace, uint64_t> effects;
  for (const uint8_t first : {uint8_t{0}, uint8_t{1}}) {
    CacheNamespace space = {};
    space[0] = first;
    for (const auto& adapter : adapters_)
      effects[namespace_of_adapter(space, adapter->digest())] = fake_effect(adapter.get());
  }
  return effects;
}

}  // namespace octavo
