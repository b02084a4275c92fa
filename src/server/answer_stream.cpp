#include "server/answer_stream.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/error.h"
#include "server/api_keys.h"
#include "server/server_context.h"
#include "text/dialects/call_id.h"

namespace octavo::server {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

AnswerStream::AnswerStream(ServerContext& context, Exchange& exchange, const GenerationJob& job,
                           Clock::time_point arrival)
    : context_(context), exchange_(exchange), job_(job), timer_(context.io) {
  mailbox_ = std::make_shared<UpdateMailbox>(
      context.io.get_executor(), [this] { wake(); },
      job.stream ? kMailboxBytes : kUnboundedMailbox);
  for (const PreparedPrompt& prompt : job.prompts) {
    const auto length = static_cast<int>(prompt.tokens.size());
    usage_.prompt_tokens += length;
    for (int i = 0; i < job.engine.n; ++i) {
      choices_.push_back({.text = AnswerText(context.model.text.tokenizer, job.text),
                          .timer = ChoiceTimer(context.metrics, arrival, length)});
    }
  }
  context_.answering.insert(this);
  exchange_.on_client_gone([this] { wake(); });
  try {
    submit();
  } catch (...) {
    end();
    throw;
  }
  open_choices_ = choices_.size();
}

AnswerStream::~AnswerStream() {
  for (Choice& choice : choices_) {
    if (!choice.done) choice.timer.ended(FinishReason::kAbort);
  }
  end();
}

void AnswerStream::submit() {
  for (size_t i = 0; i < job_.prompts.size(); ++i) {
    Request request = job_.engine;
    request.prompt = job_.prompts[i].tokens;
    request.owner = owner_of(exchange_.request());
    requests_.push_back(context_.model.engine.submit(
        std::move(request),
        [mailbox = mailbox_, i](Update update) { mailbox->put(i, std::move(update)); }));
  }
}

void AnswerStream::end() {
  exchange_.on_client_gone(nullptr);
  context_.answering.erase(this);
  mailbox_->close();
  const auto n = static_cast<size_t>(job_.engine.n);
  for (size_t i = 0; i < requests_.size(); ++i) {
    bool running = false;
    for (size_t c = i * n; c < (i + 1) * n; ++c) running |= !choices_[c].done;
    if (running) context_.model.engine.abort(requests_[i]);
  }
}

void AnswerStream::cut_off() {
  cut_off_ = true;
  wake();
}

void AnswerStream::check() {
  if (exchange_.client_gone()) throw ClientGone();
  if (cut_off_) throw RequestError(503, "", "the server is shutting down");
  if (mailbox_->overflowed()) {
    context_.metrics.slow_readers.Increment();
    throw ClientGone();
  }
}

Awaitable<std::vector<AnswerEvent>> AnswerStream::next(std::chrono::milliseconds silence) {
  const auto deadline = silence.count() == 0 ? Clock::time_point::max() : Clock::now() + silence;
  while (true) {
    check();
    std::vector<AnswerEvent> events = events_of(mailbox_->take());
    if (!events.empty() || Clock::now() >= deadline) co_return events;
    timer_.expires_at(deadline);
    boost::system::error_code cancelled;  // by a letter, or the client's leaving
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  }
}

std::vector<AnswerEvent> AnswerStream::events_of(std::vector<UpdateMailbox::Letter> letters) {
  std::vector<AnswerEvent> events;
  for (auto& letter : letters) {
    if (auto event = event_of(letter.prompt, std::move(letter.update)))
      events.push_back(std::move(*event));
  }
  return events;
}

std::optional<AnswerEvent> AnswerStream::event_of(size_t prompt, Update update) {
  const size_t index =
      prompt * static_cast<size_t>(job_.engine.n) + static_cast<size_t>(update.choice);
  Choice& choice = choices_[index];
  if (choice.done) return std::nullopt;  // behind a stop string
  if (update.cache && prompt == 0) cache_report_ = std::move(update.cache);
  // Nothing to say yet: the answer shall not begin before it has.
  if (update.tokens.empty() && update.prompt_logprobs.empty() && update.embedding.empty() &&
      !update.finish)
    return std::nullopt;
  AnswerText::Delta delta = choice.text.take(update);
  choice.timer.tokens_came(static_cast<int>(delta.tokens), update.scheduled);
  if (!update.embedding.empty()) choice.timer.embedding_came(update.scheduled);
  if (update.cached_tokens && update.choice == 0) {
    usage_.cached_tokens += *update.cached_tokens;
    context_.metrics.prompt_tokens.Increment(
        static_cast<double>(job_.prompts[prompt].tokens.size()));
  }
  usage_.completion_tokens += static_cast<int>(delta.tokens);
  usage_.reasoning_tokens += static_cast<int>(delta.reasoning_tokens);
  update.tokens.resize(delta.tokens);
  if (update.logprobs.size() > delta.tokens) update.logprobs.resize(delta.tokens);
  if (delta.finish) {
    choice.done = true;
    --open_choices_;
    choice.timer.ended(*delta.finish);
    if (*delta.finish == FinishReason::kError) throw RequestError(500, "", update.error);
    if (delta.ended_early) context_.model.engine.abort(requests_[prompt], update.choice);
  }
  for (AnswerPart& part : delta.parts) {
    if (part.kind == PartKind::kToolCall)
      part.id = call_id(job_.id, static_cast<int>(index), part.call, job_.call_id_length);
  }
  return AnswerEvent{.index = static_cast<int>(index),
                     .text = std::move(delta.text),
                     .parts = std::move(delta.parts),
                     .tokens = std::move(update.tokens),
                     .logprobs = std::move(update.logprobs),
                     .prompt_logprobs = std::move(update.prompt_logprobs),
                     .embedding = std::move(update.embedding),
                     .finish = delta.finish,
                     .stop_string = delta.stop_string,
                     .stop_token = delta.stop_string.empty() ? update.stop_token : std::nullopt};
}

}  // namespace octavo::server
