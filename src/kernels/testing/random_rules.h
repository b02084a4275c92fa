// random_rules.h - rules and histories for the tests of sampling.
#pragma once

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "kernels/types/row_sampling.h"

namespace octavo {

inline RowHistory history_of(const std::vector<TokenId>& prompt,
                             const std::vector<TokenId>& answer) {
  auto log = std::make_shared<TokenLog>(static_cast<int>(prompt.size() + answer.size()) + 8);
  log->append(prompt);
  log->append(answer);
  const int known = log->size();
  log->append(0);  // tokens appended later must not be read
  return {.log = log, .prompt = static_cast<int32_t>(prompt.size()), .known = known};
}

inline std::vector<TokenId> random_tokens(std::mt19937& random, size_t count, size_t vocab) {
  std::vector<TokenId> tokens(count);
  for (auto& token : tokens) token = static_cast<TokenId>(random() % vocab);
  return tokens;
}

inline LogitRules random_rules(std::mt19937& random, size_t vocab) {
  LogitRules rules;
  const auto chance = [&] { return random() % 3 == 0; };
  if (chance()) rules.repetition_penalty = 1.3f;
  if (chance()) rules.presence_penalty = 0.7f;
  if (chance()) rules.frequency_penalty = -0.4f;
  if (chance()) {
    const std::vector<TokenId> tokens = random_tokens(random, 5, vocab);
    for (TokenId token : std::set(tokens.begin(), tokens.end()))
      rules.logit_bias.push_back({token, 2.5f});
  }
  if (chance())
    for (int i = 0; i < 6; ++i)
      rules.bad_words.push_back(random_tokens(random, 1 + random() % 3, vocab));
  if (chance())
    for (size_t i = 0; i < (vocab + 31) / 32; ++i)
      rules.allowed.push_back(random() % 3 == 0   ? ~uint32_t{0}
                              : random() % 2 == 0 ? 0
                                                  : static_cast<uint32_t>(random()));
  if (chance()) {
    rules.min_tokens = static_cast<int>(random() % 40);
    rules.held_back = random_tokens(random, 3, vocab);
  }
  return rules;
}

}  // namespace octavo
