#include "llm/answer_text.h"

#include <utility>

namespace octavo {

AnswerText::AnswerText(std::shared_ptr<const Tokenizer> tokenizer, AnswerTextOptions options)
    : options_(std::move(options)),
      detokenizer_(std::move(tokenizer), options_.skip_special_tokens),
      stops_({.stops = options_.stop, .include_stop_str = options_.include_stop_str_in_output}) {}

bool AnswerText::feed(const std::string& text, Delta& delta) {
  StopStrings::Step step = stops_.push(text);
  delta.text += step.text;
  if (!step.matched) return false;
  delta.stop_string = std::move(step.stop);
  delta.finish = FinishReason::kStop;
  return done_ = true;
}

AnswerText::Delta AnswerText::take(const Update& update) {
  Delta delta;
  if (done_) return delta;
  // A stop token is part of the ids, and of the text only when that was asked for.
  const bool stopped = update.finish == FinishReason::kStop;
  const size_t shown =
      update.tokens.size() - (stopped && !options_.include_stop_str_in_output ? 1 : 0);
  for (size_t i = 0; i < update.tokens.size(); ++i) {
    ++delta.tokens;
    if (i < shown && feed(detokenizer_.push(update.tokens[i]), delta)) return delta;
  }
  if (!update.finish) return delta;
  const bool whole = stopped || update.finish == FinishReason::kLength;
  if (whole && feed(detokenizer_.finish(), delta)) return delta;
  if (whole) delta.text += stops_.finish();
  delta.finish = update.finish;
  done_ = true;
  return delta;
}

}  // namespace octavo
