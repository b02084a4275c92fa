#include "llm/output_builder.h"

#include <iterator>
#include <utility>

namespace octavo {
namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

OutputBuilder::OutputBuilder(std::shared_ptr<const Tokenizer> tokenizer, const TextRequest& request,
                             std::vector<TokenId> prompt_tokens)
    : text_(std::move(tokenizer), request.text) {
  answer_.prompt_tokens = std::move(prompt_tokens);
}

OutputText::Delta OutputBuilder::take(Update update) {
  if (done_) return {};
  Generation& g = answer_.generation;
  OutputText::Delta delta = text_.take(update);
  if (g.tokens.empty() && delta.tokens > 0) first_token_ = Clock::now();
  update.tokens.resize(delta.tokens);
  if (update.logprobs.size() > delta.tokens) update.logprobs.resize(delta.tokens);
  append(g.tokens, std::move(update.tokens));
  append(g.logprobs, std::move(update.logprobs));
  append(g.prompt_logprobs, std::move(update.prompt_logprobs));
  if (update.cached_tokens) g.cached_tokens = *update.cached_tokens;
  answer_.text += delta.text;
  if (!delta.finish) return delta;
  done_ = true;
  g.finish_reason = *delta.finish;
  answer_.stop_string = delta.stop_string;
  if (delta.stop_string.empty()) answer_.stop_token = update.stop_token;
  answer_.error = update.error;
  const auto now = Clock::now();
  const auto first = g.tokens.empty() ? now : first_token_;
  g.prefill_seconds = std::chrono::duration<double>(first - asked_).count();
  g.decode_seconds = std::chrono::duration<double>(now - first).count();
  return delta;
}

}  // namespace octavo
