#include "generation/output_text.h"

#include <utility>

namespace octavo {
namespace {

void append_content(std::string text, std::vector<OutputPart>& parts) {
  if (text.empty()) return;
  std::vector<OutputPart> one;
  one.push_back({.text = std::move(text)});
  append_parts(parts, std::move(one));
}

}  // namespace

OutputText::OutputText(std::shared_ptr<const Tokenizer> tokenizer, OutputTextOptions options)
    : options_(std::move(options)),
      detokenizer_(std::move(tokenizer), options_.skip_special_tokens,
                   options_.chat ? options_.chat->markers : std::vector<TokenId>()),
      stops_({.stops = options_.stop, .include_stop_str = options_.include_stop_str_in_output}) {
  if (options_.chat) parser_.emplace(options_.chat->parser);
}

bool OutputText::end_here(Delta& delta) {
  delta.finish = FinishReason::kStop;
  delta.ended_early = true;
  return done_ = true;
}

bool OutputText::feed(const std::string& text, Delta& delta) {
  if (parser_) {
    delta.text += text;
    return feed_parts(parser_->push(text), delta);
  }
  StopStrings::Step step = stops_.push(text);
  delta.text += step.text;
  if (!step.matched) return false;
  delta.stop_string = std::move(step.stop);
  return end_here(delta);
}

bool OutputText::feed_parts(std::vector<OutputPart> parts, Delta& delta) {
  for (OutputPart& part : parts) {
    if (part.kind == PartKind::kContent) {
      StopStrings::Step step = stops_.push(part.text);
      append_content(std::move(step.text), delta.parts);
      if (!step.matched) continue;
      delta.stop_string = std::move(step.stop);
      return end_here(delta);
    }
    append_content(stops_.release(), delta.parts);
    std::vector<OutputPart> one;
    one.push_back(std::move(part));
    append_parts(delta.parts, std::move(one));
  }
  return parser_->ended() && end_here(delta);
}

void OutputText::finish_text(Delta& delta) {
  if (feed(detokenizer_.finish(), delta)) return;
  if (!parser_) {
    delta.text += stops_.finish();
    return;
  }
  // finish() ends the parser, but the output does not end early.
  feed_parts(parser_->finish(), delta);
  if (delta.stop_string.empty()) append_content(stops_.finish(), delta.parts);
}

OutputText::Delta OutputText::take(const Update& update) {
  Delta delta;
  if (done_) return delta;
  // A stop token is always in the ids, but in the text only if requested.
  const bool stopped = update.finish == FinishReason::kStop;
  const size_t shown =
      update.tokens.size() - (stopped && !options_.include_stop_str_in_output ? 1 : 0);
  for (size_t i = 0; i < update.tokens.size(); ++i) {
    ++delta.tokens;
    const bool reasoned = is_reasoning();
    const bool ended = i < shown && feed(detokenizer_.push(update.tokens[i]), delta);
    if (reasoned || is_reasoning()) ++delta.reasoning_tokens;
    if (ended) return delta;
  }
  if (!update.finish) return delta;
  if (stopped || update.finish == FinishReason::kLength) finish_text(delta);
  if (delta.stop_string.empty()) delta.finish = update.finish;
  delta.ended_early = false;
  done_ = true;
  return delta;
}

}  // namespace octavo
