#include "scheduler/step_reader.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

void report_start(const Sequence& sequence, Update& update) {
  update.cached_tokens = sequence.cached_tokens;
  update.scheduled = sequence.scheduled;
}

// True if no token was allowed, so that the drawn one does not count: sets `finish`.
bool ends_before_token(const Sequence& sequence, Update& update) {
  const TokenMask* mask = sequence.oldest_mask();
  if (mask == nullptr || !mask->allows_nothing()) return false;
  update.error = mask->failure();
  update.constraint_failed = !update.error.empty();
  update.finish = update.constraint_failed ? FinishReason::kError : FinishReason::kStop;
  return true;
}

// True if the token drawn after the next draft counts too.
bool take_token(Sequence& sequence, TokenId token, Update& update) {
  const RequestShared& shared = sequence.shared();
  const bool draft_was_right = sequence.take_token(token);
  update.tokens.push_back(token);
  const auto stop = std::ranges::find(shared.stop_tokens, token);
  if (stop != shared.stop_tokens.end()) {
    const auto index = static_cast<size_t>(stop - shared.stop_tokens.begin());
    if (index >= shared.model_stop_tokens) update.stop_token = token;
    update.finish = FinishReason::kStop;
  } else if (sequence.known() >= shared.max_length) {
    update.finish = FinishReason::kLength;
  } else {
    sequence.allow_next();
  }
  return draft_was_right && !update.finish;
}

}  // namespace

void StepReader::skip(const StepEntry& entry) {
  prompt_logprobs_ += static_cast<size_t>(entry.prompt_logprobs);
  hidden_rows_ += static_cast<size_t>(entry.hidden_rows);
}

int StepReader::read(const StepEntry& entry, Update& update) {
  Sequence& sequence = *entry.sequence;
  update.cache = std::exchange(sequence.cache_report, nullptr);
  for (size_t i = 0; i < static_cast<size_t>(entry.prompt_logprobs); ++i)
    update.prompt_logprobs.push_back(result_.prompt_logprobs[prompt_logprobs_ + i]);
  sequence.take_prompt_logprobs(entry.prompt_logprobs);
  if (entry.hidden_rows > 0) read_hidden_rows(entry, update);
  skip(entry);
  return entry.drawn >= 0 ? read_draws(entry, update) : 0;
}

void StepReader::read_hidden_rows(const StepEntry& entry, Update& update) {
  const auto rows = result_.hidden.rows(hidden_rows_, static_cast<size_t>(entry.hidden_rows));
  auto pooled = entry.sequence->take_hidden(rows, entry.hidden_rows);
  if (!pooled) return;
  update.embedding = std::move(*pooled);
  report_start(*entry.sequence, update);
  update.finish = FinishReason::kStop;
}

int StepReader::read_draws(const StepEntry& entry, Update& update) {
  Sequence& sequence = *entry.sequence;
  const Request& request = sequence.request();
  int right = 0;
  for (auto drawn = static_cast<size_t>(entry.drawn);; ++drawn, ++right) {
    if (sequence.known() == sequence.given_length()) report_start(sequence, update);
    if (ends_before_token(sequence, update)) break;
    if (request.sampling.logprobs >= 0) update.logprobs.push_back(result_.logprobs[drawn]);
    if (request.hash_logits) update.hashes.push_back(result_.hashes[drawn]);
    const bool goes_on = take_token(sequence, result_.tokens[drawn], update);
    if (!result_.predicted.empty()) sequence.predicted = result_.predicted[drawn];
    if (!goes_on) break;
  }
  return right;
}

}  // namespace octavo
