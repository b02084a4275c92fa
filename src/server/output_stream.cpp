#include "server/output_stream.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "base/error.h"
#include "server/api_keys.h"
#include "server/server_context.h"

namespace octavo::server {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

OutputStream::OutputStream(ServerContext& context, Exchange& exchange,
                           const api::GenerationJob& job, Clock::time_point arrival)
    : context_(context),
      exchange_(exchange),
      job_(job),
      timer_(context.io),
      answers_(context.model.text.tokenizer, job) {
  mailbox_ = std::make_shared<UpdateMailbox>(
      context.io.get_executor(), [this] { wake(); },
      job.stream ? kMailboxBytes : kUnboundedMailbox);
  for (const api::PreparedPrompt& prompt : job.prompts) {
    for (int i = 0; i < job.engine.n; ++i)
      timers_.emplace_back(context.metrics, arrival, static_cast<int>(prompt.tokens.size()));
  }
  context_.answering.insert(this);
  exchange_.on_client_gone([this] { wake(); });
  try {
    submit();
  } catch (...) {
    end();
    throw;
  }
}

OutputStream::~OutputStream() {
  for (size_t i = 0; i < timers_.size(); ++i) {
    if (!answers_.done(i)) timers_[i].ended(FinishReason::kAbort);
  }
  end();
}

void OutputStream::submit() {
  for (size_t i = 0; i < job_.prompts.size(); ++i) {
    Request request = job_.engine;
    request.prompt = job_.prompts[i].tokens;
    request.owner = owner_of(exchange_.request());
    requests_.push_back(context_.model.engine.submit(
        std::move(request),
        [mailbox = mailbox_, i](Update update) { mailbox->put(i, std::move(update)); }));
  }
}

void OutputStream::end() {
  exchange_.on_client_gone(nullptr);
  context_.answering.erase(this);
  mailbox_->close();
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (answers_.running(i)) context_.model.engine.abort(requests_[i]);
  }
}

void OutputStream::cut_off() {
  cut_off_ = true;
  wake();
}

void OutputStream::check() {
  if (exchange_.client_gone()) throw ClientGone();
  if (cut_off_) throw RequestError(503, "", "the server is shutting down");
  if (mailbox_->overflowed()) {
    context_.metrics.slow_readers.Increment();
    throw ClientGone();
  }
}

Awaitable<std::vector<api::OutputEvent>> OutputStream::next(std::chrono::milliseconds silence) {
  const auto deadline = silence.count() == 0 ? Clock::time_point::max() : Clock::now() + silence;
  while (true) {
    check();
    std::vector<api::OutputEvent> events = events_of(mailbox_->take());
    if (!events.empty() || Clock::now() >= deadline) co_return events;
    timer_.expires_at(deadline);
    boost::system::error_code cancelled;  // by an update, or because the client left
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  }
}

std::vector<api::OutputEvent> OutputStream::events_of(std::vector<UpdateMailbox::Letter> letters) {
  std::vector<api::OutputEvent> events;
  for (auto& letter : letters) {
    if (auto event = event_of(letter.prompt, std::move(letter.update)))
      events.push_back(std::move(*event));
  }
  return events;
}

std::optional<api::OutputEvent> OutputStream::event_of(size_t prompt, Update update) {
  const size_t index = answers_.index_of(prompt, update);
  const int choice = update.choice;
  const auto scheduled = update.scheduled;
  const bool first = update.cached_tokens && choice == 0;
  if (update.cache && prompt == 0 && !answers_.done(index)) cache_report_ = std::move(update.cache);
  std::optional<api::OutputEvent> event = answers_.take(prompt, std::move(update));
  if (!event) return std::nullopt;
  ChoiceTimer& timer = timers_[index];
  timer.tokens_came(static_cast<int>(event->tokens.size()), scheduled);
  if (!event->embedding.empty()) timer.embedding_came(scheduled);
  if (first)
    context_.metrics.prompt_tokens.Increment(
        static_cast<double>(job_.prompts[prompt].tokens.size()));
  if (event->finish) {
    timer.ended(*event->finish);
    if (*event->finish == FinishReason::kError)
      throw RequestError(event->error_status(), "", event->error);
    if (event->ended_early) context_.model.engine.abort(requests_[prompt], choice);
  }
  return event;
}

}  // namespace octavo::server
