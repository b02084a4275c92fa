#include "scheduler_fuzz/answers.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/error.h"
#include "scheduler_fuzz/batch_checks.h"
#include "scheduler_fuzz/settings.h"

namespace octavo {

void FuzzAnswers::add(RequestId id, AskedRequest asked) {
  ++totals_.requests;
  totals_.adapted += asked.request.adapter != nullptr;
  totals_.resumed += !asked.request.resumed.empty();
  asked_.emplace(id, std::move(asked));
}

void FuzzAnswers::take(const std::vector<Update>& updates) {
  for (const Update& update : updates) {
    OCTAVO_CHECK(asked_.contains(update.request));
    AskedRequest& asked = asked_.at(update.request);
    ExpectedAnswer& answer = asked.answers.at(static_cast<size_t>(update.choice));
    OCTAVO_CHECK(!answer.ended);
    if (update.cached_tokens) admissions_.admitted(asked.arrival, update.scheduled);
    take_prompt_logprobs(update, asked);
    take_tokens(update, asked, answer);
    if (update.finish) end(update, asked, answer);
  }
}

void FuzzAnswers::take_prompt_logprobs(const Update& update, AskedRequest& asked) const {
  for (const auto& entry : update.prompt_logprobs) {
    OCTAVO_CHECK(entry.rank == asked.prompt_logprobs);
    ++asked.prompt_logprobs;
    OCTAVO_CHECK(entry.token ==
                 asked.request.prompt.at(static_cast<size_t>(asked.prompt_logprobs)));
  }
}

void FuzzAnswers::take_tokens(const Update& update, const AskedRequest& asked,
                              ExpectedAnswer& answer) {
  const Request& request = asked.request;
  OCTAVO_CHECK(update.logprobs.size() ==
               (request.sampling.logprobs >= 0 ? update.tokens.size() : 0));
  OCTAVO_CHECK(update.hashes.size() == (request.hash_logits ? update.tokens.size() : 0));
  for (size_t i = 0; i < update.logprobs.size(); ++i)
    OCTAVO_CHECK(update.logprobs[i].token == update.tokens[i]);
  for (const TokenId token : update.tokens) {
    OCTAVO_CHECK(token == oracle_.next_token(answer, request));
    FuzzOracle::take(answer, token);
    ++totals_.tokens;
  }
}

void FuzzAnswers::end(const Update& update, AskedRequest& asked, ExpectedAnswer& answer) {
  answer.ended = true;
  const Request& request = asked.request;
  if (request.pooling != Pooling::kNone) return end_pooled(update, asked);
  check_reason(update, request, answer);
  const bool whole =
      *update.finish == FinishReason::kStop || *update.finish == FinishReason::kLength;
  if (whole && update.choice == 0 && request.sampling.prompt_logprobs >= 0)
    OCTAVO_CHECK(asked.prompt_logprobs == static_cast<int>(request.prompt.size()) - 1);
  totals_.finished += whole;
  count_end(update);
  if (std::ranges::all_of(asked.answers, &ExpectedAnswer::ended)) asked_.erase(update.request);
}

void FuzzAnswers::check_reason(const Update& update, const Request& request,
                               ExpectedAnswer& answer) {
  const auto produced = static_cast<int>(answer.tokens.size() - request.prompt.size());
  if (*update.finish == FinishReason::kLength) {
    OCTAVO_CHECK(produced == request.max_tokens ||
                 static_cast<int>(answer.tokens.size()) == options_.max_model_len);
  } else if (*update.finish == FinishReason::kStop) {
    const bool own = answer.tokens.back() == kFuzzStop && !request.ignore_eos;
    totals_.constrained += answer.state != nullptr;
    OCTAVO_CHECK(own || FuzzOracle::allows_nothing(answer) ||
                 std::ranges::count(request.stop_token_ids, answer.tokens.back()) > 0);
    // The end of a grammar takes precedence over min_tokens.
    OCTAVO_CHECK(produced > request.min_tokens || request.min_tokens == 0 || answer.state);
  }
  if (update.constraint_failed) {
    OCTAVO_CHECK(*update.finish == FinishReason::kError && FuzzOracle::grammar_fails(answer));
    ++totals_.grammar_failures;
  }
}

void FuzzAnswers::end_pooled(const Update& update, const AskedRequest& asked) {
  OCTAVO_CHECK(update.tokens.empty() && asked.prompt_logprobs == 0);
  if (*update.finish == FinishReason::kStop) {
    OCTAVO_CHECK(update.embedding == oracle_.embedding(asked.request));
    ++totals_.pooled;
    totals_.whole += options_.whole_prompts;
  }
  count_end(update);
  asked_.erase(update.request);
}

void FuzzAnswers::count_end(const Update& update) {
  totals_.aborted += *update.finish == FinishReason::kAbort;
  totals_.errors += *update.finish == FinishReason::kError;
}

void FuzzAnswers::check_types(const Batch& batch) const {
  if (!options_.whole_prompts) OCTAVO_CHECK(batch.token_types.empty());
  for (size_t s = 0; options_.whole_prompts && s + 1 < batch.cu_seqlens_q.size(); ++s) {
    const auto begin = static_cast<size_t>(batch.cu_seqlens_q[s]);
    const auto count = static_cast<size_t>(batch.cu_seqlens_q[s + 1]) - begin;
    const std::span tokens = std::span(batch.tokens).subspan(begin, count);
    OCTAVO_CHECK(std::ranges::any_of(asked_, [&](const auto& entry) {
      const Request& request = entry.second.request;
      return std::ranges::equal(request.prompt, tokens) &&
             second_text_of(batch, begin, count) == request.second_text;
    }));
  }
}

}  // namespace octavo
