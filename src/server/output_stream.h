// output_stream.h - the output of one request as events, for any API. I/O thread only.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/output_events.h"
#include "server/admission.h"
#include "server/http/exchange.h"
#include "server/metrics/choice_timer.h"
#include "server/tracing/request_span.h"
#include "server/update_mailbox.h"

namespace octavo::server {

class ServerContext;

class OutputStream {
 public:
  // Throws RequestError if the prompts are too many. `arrival`: when the request arrived.
  OutputStream(ServerContext& context, Exchange& exchange, const api::GenerationJob& job,
               std::chrono::steady_clock::time_point arrival);
  // Aborts unfinished engine requests.
  ~OutputStream();
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  // Submits every prompt. Throws RequestError if the engine refuses one. `sent` gets the events of a
  // resumed answer that its earlier attempt has sent; it is called on a text worker.
  Awaitable<void> start(const std::function<void(api::OutputEvent)>& sent);

  bool done() const { return answers_.done(); }
  // The next events, or none after `silence` without any (zero: wait forever). Throws ClientGone,
  // or RequestError if the engine fails, the server shuts down, or the request's deadline passes.
  Awaitable<std::vector<api::OutputEvent>> next(std::chrono::milliseconds silence);

  const api::Usage& usage() const { return answers_.usage(); }
  // For the first prompt, after its first step; null before.
  const CacheReport* cache_report() const { return cache_report_.get(); }

  // Makes next() throw, for shutdown, and notes it in the access log.
  void cut_off();

 private:
  void submit();
  std::vector<ResumedOutput> resumed_of(size_t prompt) const;
  void end();
  void check();
  std::vector<api::OutputEvent> take_events();
  void trace() noexcept;
  RequestSpan span() const;
  std::string why_ended_early() const;
  void count_by_key();
  std::vector<api::OutputEvent> events_of(std::vector<UpdateMailbox::Letter> letters);
  std::optional<api::OutputEvent> event_of(size_t prompt, Update update);
  void wake() { timer_.cancel(); }

  ServerContext& context_;
  Exchange& exchange_;
  const api::GenerationJob& job_;
  std::chrono::steady_clock::time_point arrival_;
  Allowance::Lease sequences_;  // before all that is allocated per sequence
  std::shared_ptr<UpdateMailbox> mailbox_;
  boost::asio::steady_timer timer_;
  std::vector<RequestId> requests_;  // one per prompt; unused if all of its choices have ended
  api::OutputEvents answers_;
  std::vector<ChoiceTimer> timers_;  // prompt * n + choice
  std::shared_ptr<const CacheReport> cache_report_;
  int64_t prompt_tokens_ = 0;     // processed, of all prompts
  int64_t generated_tokens_ = 0;  // by this process
  std::string failure_;           // the error that ended it
  bool submitted_ = false;
  bool cut_off_ = false;
};

}  // namespace octavo::server
