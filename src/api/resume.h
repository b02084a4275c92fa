// resume.h - continues an interrupted answer: checks the tokens it already has, and tells a client
// what it must send to continue this one.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/generation_request.h"
#include "api/output_events.h"

namespace octavo::api {

// Throws RequestError: 409 if the answer was begun by a server with other bits than `own`.
void check_fingerprint(const ResumeFacts& facts, const std::string& own);

// The tokens of prompt `index` of `count`: as the interrupted answer had them, or else those that
// `encode` returns, truncated as the request says. Throws RequestError(400).
std::vector<TokenId> prompt_tokens(size_t index, size_t count, const GenerationRequest& request,
                                   const ServedModel& model,
                                   const std::function<std::vector<TokenId>()>& encode);

// Sets job.resumed from the request's tokens, after all prompts were added. Throws RequestError(400)
// unless each list could be the output so far of a choice.
void resume_outputs(GenerationJob& job, const GenerationRequest& request, const ServedModel& model,
                    const Preparation& preparation);

// The field `resume` of the answer. `usage`: at its first event.
Json resume_json(const GenerationJob& job, const ServedModel& model, const Usage& usage);

// The update in parts of at most one token. The events of an answer that may be resumed then do not
// depend on how many tokens a step gave.
std::vector<Update> single_tokens(Update update);

// Adds token ids to the last of the server-sent events in a text.
class EventTokens {
 public:
  explicit EventTokens(const GenerationJob& job) : on_(job.resumable) {}

  void add(const std::vector<TokenId>& tokens) {
    if (on_) waiting_.insert(waiting_.end(), tokens.begin(), tokens.end());
  }
  // As member "token_ids" of the last event in `out`, if there is one from `start` on. Otherwise the
  // tokens wait for the next.
  void write(std::string& out, size_t start);

 private:
  bool on_;
  std::vector<TokenId> waiting_;
};

}  // namespace octavo::api
