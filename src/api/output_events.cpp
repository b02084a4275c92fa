#include "api/output_events.h"

#include <iterator>
#include <utility>

#include "text/dialects/call_id.h"

namespace octavo::api {
namespace {

template <typename T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

OutputEvents::OutputEvents(std::shared_ptr<const Tokenizer> tokenizer, const GenerationJob& job)
    : job_(job) {
  for (const PreparedPrompt& prompt : job.prompts) {
    usage_.prompt_tokens += static_cast<int>(prompt.tokens.size());
    for (int i = 0; i < job.engine.n; ++i)
      choices_.push_back({.text = OutputText(tokenizer, job.text)});
  }
  open_choices_ = choices_.size();
}

bool OutputEvents::running(size_t prompt) const {
  const auto n = static_cast<size_t>(job_.engine.n);
  for (size_t i = prompt * n; i < (prompt + 1) * n; ++i) {
    if (!choices_[i].done) return true;
  }
  return false;
}

size_t OutputEvents::index_of(size_t prompt, const Update& update) const {
  return prompt * static_cast<size_t>(job_.engine.n) + static_cast<size_t>(update.choice);
}

std::optional<OutputEvent> OutputEvents::take(size_t prompt, Update update) {
  const size_t index = index_of(prompt, update);
  Choice& choice = choices_[index];
  if (choice.done) return std::nullopt;  // after a stop string
  // The response must not start before there is output.
  if (update.tokens.empty() && update.prompt_logprobs.empty() && update.embedding.empty() &&
      !update.finish)
    return std::nullopt;
  OutputText::Delta delta = choice.text.take(update);
  if (update.cached_tokens && update.choice == 0) usage_.cached_tokens += *update.cached_tokens;
  usage_.completion_tokens += static_cast<int>(delta.tokens);
  usage_.reasoning_tokens += static_cast<int>(delta.reasoning_tokens);
  update.tokens.resize(delta.tokens);
  if (update.logprobs.size() > delta.tokens) update.logprobs.resize(delta.tokens);
  if (delta.finish) {
    choice.done = true;
    --open_choices_;
  }
  for (OutputPart& part : delta.parts) {
    if (part.kind == PartKind::kToolCall)
      part.id = call_id(job_.id, static_cast<int>(index), part.call, job_.call_id_length);
  }
  return OutputEvent{.index = static_cast<int>(index),
                     .text = std::move(delta.text),
                     .parts = std::move(delta.parts),
                     .tokens = std::move(update.tokens),
                     .logprobs = std::move(update.logprobs),
                     .prompt_logprobs = std::move(update.prompt_logprobs),
                     .embedding = std::move(update.embedding),
                     .finish = delta.finish,
                     .stop_string = delta.stop_string,
                     .stop_token = delta.stop_string.empty() ? update.stop_token : std::nullopt,
                     .error = std::move(update.error),
                     .over_limit = update.over_limit,
                     .ended_early = delta.ended_early};
}

void merge(OutputEvent& whole, OutputEvent&& event) {
  whole.text += event.text;
  append_parts(whole.parts, std::move(event.parts));
  append(whole.tokens, std::move(event.tokens));
  append(whole.logprobs, std::move(event.logprobs));
  append(whole.prompt_logprobs, std::move(event.prompt_logprobs));
  append(whole.embedding, std::move(event.embedding));
  if (!event.finish) return;
  whole.finish = event.finish;
  whole.stop_string = std::move(event.stop_string);
  whole.stop_token = event.stop_token;
}

}  // namespace octavo::api
