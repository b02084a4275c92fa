#include "server/respond.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "server/front_notes.h"
#include "server/http/cache_header.h"
#include "server/server_context.h"

namespace octavo::server {

using namespace api;

namespace {

HttpResponse head(const ServerContext& context, const GenerationJob& job,
                  const OutputStream& answers, const char* content_type) {
  HttpResponse response{.content_type = content_type};
  if (context.options.behind_front) response.headers.emplace_back(kAnswerHeader, job.id);
  if (!job.ignored.empty())
    response.headers.emplace_back("x-octavo-ignored",
                                  fmt::format("{}", fmt::join(job.ignored, ", ")));
  if (const CacheReport* report = answers.cache_report())
    response.headers.emplace_back(kCacheHeader, cache_header(*report));
  return response;
}

void note_usage(Exchange& exchange, const Usage& usage) {
  exchange.note("prompt_tokens", std::to_string(usage.prompt_tokens));
  exchange.note("cached_tokens", std::to_string(usage.cached_tokens));
  exchange.note("completion_tokens", std::to_string(usage.completion_tokens));
}

Awaitable<void> send_events(ServerContext& context, Exchange& exchange, const GenerationJob& job,
                            OutputFormat& format, OutputStream& answers) {
  std::string out;
  bool noted = false;
  while (!answers.done()) {
    const std::vector<OutputEvent> events = co_await answers.next(context.options.sse_keepalive);
    out.clear();
    if (events.empty()) format.append_keep_alive(out);
    for (const OutputEvent& event : events) {
      format.append_event(out, event, event.usage);
      // The last event and the end of the stream are one part: neither can follow without the other.
      const bool last = answers.done() && &event == &events.back();
      if (context.options.behind_front && !last) {
        if (!std::exchange(noted, true)) append_start_note(out, job, context.model, event.usage);
        append_token_note(out, event);
      }
    }
    if (answers.done()) format.append_end(out, answers.usage());
    // Send the status with the first event, so that an earlier failure has its own status.
    if (!exchange.started()) {
      HttpResponse begin = head(context, job, answers, format.content_type());
      begin.headers.emplace_back("Cache-Control", "no-cache");
      co_await exchange.start_stream(std::move(begin));
    }
    if (!out.empty()) co_await exchange.write(out);
  }
}

Awaitable<void> send_streamed(ServerContext& context, Exchange& exchange, const GenerationJob& job,
                              OutputFormat& format, OutputStream& answers) {
  std::string error_event;
  try {
    co_await send_events(context, exchange, job, format, answers);
  } catch (const RequestError& error) {
    if (!exchange.started()) throw;
    format.append_error(error_event, error);
  }
  if (!error_event.empty()) co_await exchange.write(error_event);
}

std::vector<OutputEvent> empty_answers(const GenerationJob& job) {
  std::vector<OutputEvent> answers(job.prompts.size() * static_cast<size_t>(job.engine.n));
  for (size_t i = 0; i < answers.size(); ++i) answers[i].index = static_cast<int>(i);
  return answers;
}

// `whole`: what an earlier attempt has generated, one per choice.
Awaitable<void> send_whole(ServerContext& context, Exchange& exchange, const GenerationJob& job,
                           WholeFormat& format, OutputStream& answers,
                           std::vector<OutputEvent> whole) {
  while (!answers.done()) {
    std::vector<OutputEvent> events = co_await answers.next(std::chrono::milliseconds(0));
    for (OutputEvent& event : events)
      merge(whole[static_cast<size_t>(event.index)], std::move(event));
  }
  HttpResponse response = head(context, job, answers, "application/json");
  const auto write = [&] { return format.whole(whole, answers.usage()); };
  constexpr size_t kFew = 64;
  const SamplingParams& sampling = job.engine.sampling;
  const bool much = sampling.logprobs >= 0 || sampling.prompt_logprobs >= 0 ||
                    whole.size() > kFew || job.engine.pooling != Pooling::kNone;
  if (much) {  // may be millions of tokens or numbers to serialize
    response.body = co_await context.on_text_worker(write);
  } else {
    response.body = write();
  }
  co_await exchange.send(std::move(response));
}

}  // namespace

Awaitable<void> respond(ServerContext& context, Exchange& exchange, const GenerationJob& job,
                        OutputFormat& format, std::chrono::steady_clock::time_point arrival) {
  if (exchange.client_gone()) throw ClientGone();
  OutputStream answers(context, exchange, job, arrival);
  std::vector<OutputEvent> whole;
  if (!job.stream) whole = empty_answers(job);
  std::string sent;
  const std::function<void(OutputEvent)> take_sent = [&](OutputEvent event) {
    if (job.stream) {
      sent.clear();
      format.append_event(sent, event, event.usage);
    } else {
      merge(whole[static_cast<size_t>(event.index)], std::move(event));
    }
  };
  co_await answers.start(take_sent);
  if (job.stream) {
    co_await send_streamed(context, exchange, job, format, answers);
  } else {
    co_await send_whole(context, exchange, job, format, answers, std::move(whole));
  }
  note_usage(exchange, answers.usage());
}

Awaitable<void> respond_whole(ServerContext& context, Exchange& exchange, const GenerationJob& job,
                              WholeFormat& format, std::chrono::steady_clock::time_point arrival) {
  if (exchange.client_gone()) throw ClientGone();
  OutputStream answers(context, exchange, job, arrival);
  std::vector<OutputEvent> whole = empty_answers(job);
  const std::function<void(OutputEvent)> nothing_sent = nullptr;
  co_await answers.start(nothing_sent);
  co_await send_whole(context, exchange, job, format, answers, std::move(whole));
  note_usage(exchange, answers.usage());
}

}  // namespace octavo::server
