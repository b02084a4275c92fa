#include "api/output_events.h"

#include <iterator>
#include <utility>

#include "base/error.h"
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
    usage_.image_tokens += prompt.image_tokens();
    for (int i = 0; i < job.engine.n; ++i)
      choices_.push_back({.text = OutputText(tokenizer, job.text)});
  }
  open_choices_ = choices_.size();
  usage_.cached_tokens = job.cached_tokens.value_or(0);
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

// What the engine reported for one token. Log probabilities are left out: they have been sent.
Update OutputEvents::resumed_update(size_t index, size_t position) const {
  const auto n = static_cast<size_t>(job_.engine.n);
  const ResumedChoice& resumed = job_.resumed[index];
  const TokenId token = resumed.output.tokens[position];
  Update update{.choice = static_cast<int>(index % n), .tokens = {token}};
  if (job_.engine.sampling.logprobs >= 0) update.logprobs.push_back({.token = token});
  if (position == 0 && index % n == 0 && job_.engine.sampling.prompt_logprobs >= 0) {
    const std::vector<TokenId>& prompt = job_.prompts[index / n].tokens;
    for (size_t i = 1; i < prompt.size(); ++i)
      update.prompt_logprobs.push_back({.token = prompt[i]});
  }
  if (position + 1 == resumed.output.tokens.size()) {
    update.finish = resumed.finish;
    update.stop_token = resumed.stop_token;
  }
  return update;
}

void OutputEvents::resume(const std::function<void(OutputEvent)>& sent) {
  for (size_t i = 0; i < job_.resumed.size(); ++i) {
    for (size_t k = 0; k < job_.resumed[i].output.tokens.size(); ++k) {
      if (choices_[i].done)
        throw RequestError(400, "resume_token_ids", "has tokens after the end of the answer");
      auto event = take(i / static_cast<size_t>(job_.engine.n), resumed_update(i, k));
      if (event) sent(std::move(*event));
    }
  }
  if (done()) throw RequestError(400, "resume_token_ids", "has ended: nothing is left to generate");
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
  if (update.cached_tokens && update.choice == 0 && !job_.cached_tokens)
    usage_.cached_tokens += *update.cached_tokens;
  if (index == 0 && update.cached_tokens) {
    usage_.scheduled = update.scheduled;
    usage_.first_token = std::chrono::steady_clock::now();
  }
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
                     .error_status = update.constraint_failed ? 400 : 500,
                     .ended_early = delta.ended_early,
                     .usage = usage_};
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
