// answer_stream.h - the answers to one call, event by event, whichever API they are for. I/O thread
// only.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "llm/answer_text.h"
#include "server/choice_timer.h"
#include "server/exchange.h"
#include "server/generation_call.h"
#include "server/update_mailbox.h"
#include "text/answer_part.h"

namespace octavo::server {

class ServerContext;

// What one choice has to say.
struct AnswerEvent {
  int index = 0;          // prompt * n + choice
  std::string text = {};  // as the model wrote it, calls and reasoning included
  std::vector<AnswerPart> parts =
      {};  // of a chat: the same, told apart; one per kind and call in a row
  std::vector<TokenId> tokens = {};
  std::vector<TokenLogprobs> logprobs = {};         // one per token, when asked for
  std::vector<TokenLogprobs> prompt_logprobs = {};  // from the prompt's second token on
  std::vector<float> embedding = {};                // of a request that pools
  std::optional<FinishReason> finish = {};          // the choice's last event
  std::string stop_string = {};                     // that ended it, if one did
  std::optional<TokenId> stop_token = {};           // or the one of stop_token_ids
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int reasoning_tokens = 0;  // of these
  int cached_tokens = 0;
};

class AnswerStream {
 public:
  // Submits every prompt. Throws RequestError when the engine takes not all of them. `arrival` is
  // when the request came.
  AnswerStream(ServerContext& context, Exchange& exchange, const GenerationJob& job,
               std::chrono::steady_clock::time_point arrival);
  // Ends what still runs.
  ~AnswerStream();
  AnswerStream(const AnswerStream&) = delete;
  AnswerStream& operator=(const AnswerStream&) = delete;

  bool done() const { return open_choices_ == 0; }
  // The next events, or none when `silence` has passed without any (zero: waits for ever). Throws
  // ClientGone, or RequestError when the engine failed or the server ends.
  Awaitable<std::vector<AnswerEvent>> next(std::chrono::milliseconds silence);

  const Usage& usage() const { return usage_; }
  // Of the call's first prompt, once its first step is done.
  const CacheReport* cache_report() const { return cache_report_.get(); }

  // The server ends: next() throws.
  void cut_off();

 private:
  struct Choice {
    AnswerText text;
    ChoiceTimer timer;
    bool done = false;
  };

  void submit();
  void end();
  void check();
  std::vector<AnswerEvent> events_of(std::vector<UpdateMailbox::Letter> letters);
  std::optional<AnswerEvent> event_of(size_t prompt, Update update);
  void wake() { timer_.cancel(); }

  ServerContext& context_;
  Exchange& exchange_;
  const GenerationJob& job_;
  std::shared_ptr<UpdateMailbox> mailbox_;
  boost::asio::steady_timer timer_;
  std::vector<RequestId> requests_;  // one per prompt
  std::vector<Choice> choices_;      // prompt * n + choice
  size_t open_choices_ = 0;
  Usage usage_;
  std::shared_ptr<const CacheReport> cache_report_;
  bool cut_off_ = false;
};

}  // namespace octavo::server
