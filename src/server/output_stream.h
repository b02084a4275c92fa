// output_stream.h - the answers to one call, event by event, whichever API they are for. I/O thread
// only.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/output_events.h"
#include "server/http/exchange.h"
#include "server/metrics/choice_timer.h"
#include "server/update_mailbox.h"

namespace octavo::server {

class ServerContext;

class OutputStream {
 public:
  // Submits every prompt. Throws RequestError when the engine takes not all of them. `arrival` is
  // when the request came.
  OutputStream(ServerContext& context, Exchange& exchange, const api::GenerationJob& job,
               std::chrono::steady_clock::time_point arrival);
  // Ends what still runs.
  ~OutputStream();
  OutputStream(const OutputStream&) = delete;
  OutputStream& operator=(const OutputStream&) = delete;

  bool done() const { return answers_.done(); }
  // The next events, or none when `silence` has passed without any (zero: waits for ever). Throws
  // ClientGone, or RequestError when the engine failed or the server ends.
  Awaitable<std::vector<api::OutputEvent>> next(std::chrono::milliseconds silence);

  const api::Usage& usage() const { return answers_.usage(); }
  // Of the call's first prompt, once its first step is done.
  const CacheReport* cache_report() const { return cache_report_.get(); }

  // The server ends: next() throws.
  void cut_off();

 private:
  void submit();
  void end();
  void check();
  std::vector<api::OutputEvent> events_of(std::vector<UpdateMailbox::Letter> letters);
  std::optional<api::OutputEvent> event_of(size_t prompt, Update update);
  void wake() { timer_.cancel(); }

  ServerContext& context_;
  Exchange& exchange_;
  const api::GenerationJob& job_;
  std::shared_ptr<UpdateMailbox> mailbox_;
  boost::asio::steady_timer timer_;
  std::vector<RequestId> requests_;  // one per prompt
  api::OutputEvents answers_;
  std::vector<ChoiceTimer> timers_;  // prompt * n + choice
  std::shared_ptr<const CacheReport> cache_report_;
  bool cut_off_ = false;
};

}  // namespace octavo::server
