#include "scheduler_fuzz/oracle.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "scheduler_fuzz/settings.h"

namespace octavo {
namespace {

std::shared_ptr<const TokenMask> mask_of(ConstraintState& state) {
  auto mask = std::make_shared<TokenMask>();
  mask->set(state.allowed());
  return mask;
}

}  // namespace

std::vector<ExpectedAnswer> FuzzOracle::begin(const Request& request) const {
  std::vector<ExpectedAnswer> answers;
  for (int choice = 0; choice < request.n; ++choice)
    answers.push_back({request.prompt, sampling_of(request, choice),
                       request.constraint ? request.constraint->begin() : nullptr});
  return answers;
}

TokenId FuzzOracle::next_token(ExpectedAnswer& answer, const Request& request) const {
  answer.sampling.position = static_cast<uint32_t>(answer.tokens.size());
  if (answer.state) answer.sampling.mask = mask_of(*answer.state);
  return model_.next_token(answer.tokens, answer.sampling, request.adapter.get(), request.images);
}

void FuzzOracle::take(ExpectedAnswer& answer, TokenId token) {
  if (answer.state) OCTAVO_CHECK(answer.state->accept(token));
  answer.tokens.push_back(token);
}

std::vector<float> FuzzOracle::embedding(const Request& request) const {
  return options_.whole_prompts
             ? model_.whole_embedding(request.prompt, request.second_text, request.pooling)
             : model_.embedding(request.prompt, request.pooling, request.adapter.get());
}

bool FuzzOracle::grammar_fails(const ExpectedAnswer& answer) {
  try {
    if (answer.state) answer.state->allowed();
    return false;
  } catch (const std::runtime_error&) {
    return true;
  }
}

bool FuzzOracle::allows_nothing(ExpectedAnswer& answer) {
  return answer.state && !grammar_fails(answer) && mask_of(*answer.state)->allows_nothing();
}

// The position is set for each token.
RowSampling FuzzOracle::sampling_of(const Request& request, int choice) const {
  RowSampling sampling{.temperature = request.sampling.temperature,
                       .seed = request.sampling.seed,
                       .choice = static_cast<uint32_t>(choice)};
  if (request.min_tokens > 0 || request.sampling.repetition_penalty != 1) {
    LogitRules rules{.repetition_penalty = request.sampling.repetition_penalty,
                     .min_tokens = request.min_tokens};
    if (!request.ignore_eos) rules.held_back = options_.stop_token_ids;
    rules.held_back.insert(rules.held_back.end(), request.stop_token_ids.begin(),
                           request.stop_token_ids.end());
    sampling.rules = std::make_shared<const LogitRules>(std::move(rules));
    sampling.history.prompt = static_cast<int32_t>(request.prompt.size());
  }
  return sampling;
}

bool FuzzOracle::finishes(const ExpectedAnswer& answer, const Request& request) const {
  const TokenId last = answer.tokens.back();
  return (last == kFuzzStop && !request.ignore_eos) ||
         std::ranges::count(request.stop_token_ids, last) > 0 ||
         std::ssize(answer.tokens) == std::ssize(request.prompt) + request.max_tokens ||
         std::ssize(answer.tokens) == options_.max_model_len;
}

void FuzzOracle::resume(RandomDraws& draws, Request& request,
                        std::vector<ExpectedAnswer>& answers) const {
  std::vector<ResumedOutput> resumed;
  for (ExpectedAnswer& answer : answers) {
    ResumedOutput& output = resumed.emplace_back();
    for (int left = draws.draw(0, request.max_tokens); left > 0 && !output.finished; --left) {
      if (grammar_fails(answer)) break;
      const TokenId token = next_token(answer, request);
      if (answer.state && answer.sampling.mask->allows_nothing()) break;
      take(answer, token);
      output.tokens.push_back(token);
      output.finished = finishes(answer, request);
    }
  }
  // Something must be left to do.
  resumed.front().finished = false;
  ExpectedAnswer& first = answers.front();
  while (!resumed.front().tokens.empty()) {
    resumed.front().tokens.pop_back();
    first.tokens.pop_back();
    if (first.state) first.state->take_back(1);
    if (draws.chance(50)) break;
  }
  for (size_t i = 0; i < resumed.size(); ++i) answers[i].ended = resumed[i].finished;
  request.resumed = std::move(resumed);
}

}  // namespace octavo
