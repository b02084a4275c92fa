#include "server/output_stream.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <utility>

#include "api/resume.h"
#include "base/error.h"
#include "base/log.h"
#include "server/front_notes.h"
#include "server/server_context.h"

namespace octavo::server {
namespace {

using Clock = std::chrono::steady_clock;

Allowance::Lease lease_for(ServerContext& context, const api::GenerationJob& job) {
  const auto prompts = static_cast<int64_t>(job.prompts.size());
  const char* param = prompts == 1 ? "n" : job.prompts_field.c_str();
  return context.open_sequences(prompts * job.engine.n, param);
}

// Whether the request is a line of a batch. Only a front process can mark it with a header.
bool in_background(const HttpRequest& request, const ServerOptions& options) {
  return request.batch_owner.has_value() ||
         (options.behind_front && !request.header(kBackgroundHeader).empty());
}

}  // namespace

OutputStream::OutputStream(ServerContext& context, Exchange& exchange,
                           const api::GenerationJob& job, Clock::time_point arrival)
    : context_(context),
      exchange_(exchange),
      job_(job),
      arrival_(arrival),
      sequences_(lease_for(context, job)),
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
}

Awaitable<void> OutputStream::start(const std::function<void(api::OutputEvent)>& sent) {
  if (!job_.resumed.empty()) {
    const auto resume = [this, &sent] {
      answers_.resume(sent);
      return true;
    };
    co_await context_.on_text_worker(resume);  // may be many tokens
  }
  submit();
  submitted_ = true;
}

std::vector<ResumedOutput> OutputStream::resumed_of(size_t prompt) const {
  std::vector<ResumedOutput> outputs;
  if (job_.resumed.empty()) return outputs;
  const auto n = static_cast<size_t>(job_.engine.n);
  for (size_t i = prompt * n; i < (prompt + 1) * n; ++i) {
    outputs.push_back(job_.resumed[i].output);
    outputs.back().finished = answers_.done(i);
  }
  return outputs;
}

OutputStream::~OutputStream() {
  for (size_t i = 0; i < timers_.size(); ++i) {
    if (submitted_ && !answers_.done(i)) timers_[i].ended(FinishReason::kAbort);
  }
  trace();
  count_by_key();
  end();
}

void OutputStream::trace() noexcept {
  if (!submitted_ || !context_.options.spans) return;
  try {
    context_.options.spans->record(span());
  } catch (const std::exception& error) {
    spdlog::warn("a request is missing in traces: {}", error.what());
  }
}

RequestSpan OutputStream::span() const {
  constexpr size_t kMostReasons = 16;
  const Request& request = job_.engine;
  RequestSpan span{.caller = trace_headers(exchange_.request()),
                   .request_id = exchange_.request().id,
                   .model = context_.model.answer_name(request.adapter.get()),
                   .cached_tokens = usage().cached_tokens,
                   .completion_tokens = usage().completion_tokens,
                   .sequences = timers_.size(),
                   .arrival = arrival_,
                   .end = Clock::now(),
                   .error = why_ended_early()};
  if (request.pooling == Pooling::kNone) {
    span.sampling = RequestSpan::Sampling{.temperature = request.sampling.temperature,
                                          .top_p = request.sampling.top_p,
                                          .max_tokens = request.max_tokens,
                                          .n = request.n};
  }
  for (const api::PreparedPrompt& prompt : job_.prompts)
    span.prompt_tokens += static_cast<int64_t>(prompt.tokens.size());
  for (const ChoiceTimer& timer : timers_) {
    if (timer.finish() && span.finish_reasons.size() < kMostReasons)
      span.finish_reasons.emplace_back(name_of(*timer.finish()));
    if (!timer.answered()) continue;
    if (!span.work) {
      span.work = RequestSpan::Work{.scheduled = timer.scheduled(),
                                    .first_token = timer.first_token(),
                                    .last_token = timer.last_token()};
    }
    RequestSpan::Work& work = *span.work;
    work.scheduled = std::min(work.scheduled, timer.scheduled());
    work.first_token = std::min(work.first_token, timer.first_token());
    work.last_token = std::max(work.last_token, timer.last_token());
  }
  return span;
}

std::string OutputStream::why_ended_early() const {
  if (!failure_.empty() || done()) return failure_;
  return mailbox_->overflowed() ? "the client read too slowly" : "the client disconnected";
}

void OutputStream::count_by_key() {
  const auto name = key_name_of(context_, exchange_.request());
  if (!name) return;
  ServerMetrics& metrics = context_.metrics;
  if (context_.options.behind_front) {  // which knows the keys
    metrics.prompt_tokens_by_key.add_name(*name);
    metrics.generation_tokens_by_key.add_name(*name);
  }
  metrics.prompt_tokens_by_key.add(*name, static_cast<double>(prompt_tokens_));
  metrics.generation_tokens_by_key.add(*name, static_cast<double>(generated_tokens_));
}

void OutputStream::submit() {
  const Tenant tenant = context_.tenants.of(exchange_.request());
  const uint64_t call = context_.next_call();
  for (size_t i = 0; i < job_.prompts.size(); ++i) {
    if (!answers_.running(i)) {
      requests_.push_back(0);
      continue;
    }
    Request request = job_.engine;
    request.prompt = job_.prompts[i].tokens;
    request.second_text = job_.prompts[i].second_text;
    request.images = job_.prompts[i].images;
    request.resumed = resumed_of(i);
    // The prompt's log probabilities came with the first token of the first choice.
    if (!request.resumed.empty() && !request.resumed.front().tokens.empty())
      request.sampling.prompt_logprobs = -1;
    request.owner = tenant.owner;
    request.call = call;
    request.background = in_background(exchange_.request(), context_.options);
    request.cache_namespace = tenant.cache_namespace;
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
  exchange_.note("ended_by", "shutdown");
  wake();
}

void OutputStream::check() {
  if (exchange_.client_gone()) throw ClientGone();
  if (cut_off_) throw RequestError(503, "", "the server is shutting down");
  check_deadline(context_, exchange_);
  if (mailbox_->overflowed()) {
    context_.metrics.slow_readers.Increment();
    throw ClientGone();
  }
}

std::vector<api::OutputEvent> OutputStream::take_events() {
  try {
    check();
    return events_of(mailbox_->take());
  } catch (const RequestError& error) {
    failure_ = error.what();
    throw;
  }
}

Awaitable<std::vector<api::OutputEvent>> OutputStream::next(std::chrono::milliseconds silence) {
  const auto deadline = silence.count() == 0 ? Clock::time_point::max() : Clock::now() + silence;
  while (true) {
    std::vector<api::OutputEvent> events = take_events();
    if (!events.empty() || Clock::now() >= deadline) co_return events;
    timer_.expires_at(std::min(deadline, exchange_.request().deadline));
    boost::system::error_code cancelled;  // by an update, or because the client left
    co_await timer_.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, cancelled));
  }
}

std::vector<api::OutputEvent> OutputStream::events_of(std::vector<UpdateMailbox::Letter> letters) {
  std::vector<api::OutputEvent> events;
  const auto add = [&](size_t prompt, Update update) {
    if (auto event = event_of(prompt, std::move(update))) events.push_back(std::move(*event));
  };
  const bool one_by_one = job_.resumable || (job_.stream && context_.options.behind_front);
  for (auto& letter : letters) {
    if (!one_by_one) {
      add(letter.prompt, std::move(letter.update));
      continue;
    }
    for (Update& part : api::single_tokens(std::move(letter.update)))
      add(letter.prompt, std::move(part));
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
  generated_tokens_ += static_cast<int64_t>(event->tokens.size());
  if (first) {
    const size_t prompt_tokens = job_.prompts[prompt].tokens.size();
    prompt_tokens_ += static_cast<int64_t>(prompt_tokens);
    context_.metrics.prompt_tokens.Increment(static_cast<double>(prompt_tokens));
  }
  if (event->finish) {
    timer.ended(*event->finish);
    if (*event->finish == FinishReason::kError)
      throw RequestError(event->error_status, "", event->error);
    if (event->ended_early) context_.model.engine.abort(requests_[prompt], choice);
  }
  return event;
}

}  // namespace octavo::server
