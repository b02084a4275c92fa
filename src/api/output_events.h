// output_events.h - the answers to one call as events, made from the engine's updates. One thread
// at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/generation_request.h"
#include "generation/answer_text.h"
#include "text/answer_part.h"

namespace octavo::api {

// What one choice has to say.
struct OutputEvent {
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
  std::string error = {};                           // with FinishReason::kError
  bool ended_early = false;                         // by its text: the engine is to be told
};

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int reasoning_tokens = 0;  // of these
  int cached_tokens = 0;
};

class OutputEvents {
 public:
  // `job` must outlive it.
  OutputEvents(std::shared_ptr<const Tokenizer> tokenizer, const GenerationJob& job);

  bool done() const { return open_choices_ == 0; }
  bool done(size_t index) const { return choices_[index].done; }
  // Whether a choice of this prompt is still to end.
  bool running(size_t prompt) const;
  // prompt * n + choice
  size_t index_of(size_t prompt, const Update& update) const;

  // What the update has to say, if anything.
  std::optional<OutputEvent> take(size_t prompt, Update update);

  const Usage& usage() const { return usage_; }

 private:
  struct Choice {
    AnswerText text;
    bool done = false;
  };

  const GenerationJob& job_;
  std::vector<Choice> choices_;  // prompt * n + choice
  size_t open_choices_;
  Usage usage_;
};

// Joins what one choice says to what it said before.
void merge(OutputEvent& whole, OutputEvent&& event);

}  // namespace octavo::api
