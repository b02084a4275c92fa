// output_events.h - turns the engine's updates for one request into output events. One thread at a
// time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/generation_request.h"
#include "generation/output_text.h"
#include "text/output_part.h"

namespace octavo::api {

struct Usage {
  int prompt_tokens = 0;
  int completion_tokens = 0;
  int reasoning_tokens = 0;  // included in completion_tokens
  int cached_tokens = 0;
  int image_tokens = 0;  // included in prompt_tokens
  // Of the first prompt; the epoch: not yet.
  std::chrono::steady_clock::time_point scheduled = {};    // when it was admitted
  std::chrono::steady_clock::time_point first_token = {};  // when its first token came
};

// New output of one choice.
struct OutputEvent {
  int index = 0;          // prompt * n + choice
  std::string text = {};  // as generated, including tool calls and reasoning
  // Chats only: the text split into parts; consecutive text of one kind and tool call is one part.
  std::vector<OutputPart> parts = {};
  std::vector<TokenId> tokens = {};
  std::vector<TokenLogprobs> logprobs = {};         // one per token, if requested
  std::vector<TokenLogprobs> prompt_logprobs = {};  // from the prompt's second token on
  std::vector<float> embedding = {};                // pooling requests only
  std::optional<FinishReason> finish = {};          // the choice's last event
  std::string stop_string = {};                     // the stop string that ended it, if any
  std::optional<TokenId> stop_token = {};           // or the stop_token_ids entry
  std::string error = {};                           // with FinishReason::kError
  int error_status = 500;                           // 400: the request's grammar is too expensive
  bool ended_early = false;                         // ended by its text: abort it in the engine
  Usage usage = {};                                 // of the request, up to this event
};

class OutputEvents {
 public:
  // `job` must outlive this object.
  OutputEvents(std::shared_ptr<const Tokenizer> tokenizer, const GenerationJob& job);

  bool done() const { return open_choices_ == 0; }
  bool done(size_t index) const { return choices_[index].done; }
  // Whether any choice of this prompt is still open.
  bool running(size_t prompt) const;
  // prompt * n + choice
  size_t index_of(size_t prompt, const Update& update) const;

  // Before any update: takes the resumed tokens one by one and passes on their events, which an
  // earlier attempt has sent. Throws RequestError(400) if a choice has tokens after its end, or if
  // all have ended.
  void resume(const std::function<void(OutputEvent)>& sent);

  // Returns nullopt if the update has no visible output.
  std::optional<OutputEvent> take(size_t prompt, Update update);

  const Usage& usage() const { return usage_; }

 private:
  Update resumed_update(size_t index, size_t position) const;

  struct Choice {
    OutputText text;
    bool done = false;
  };

  const GenerationJob& job_;
  std::vector<Choice> choices_;  // prompt * n + choice
  size_t open_choices_;
  Usage usage_;
};

// Appends `event` to the earlier output of the same choice.
void merge(OutputEvent& whole, OutputEvent&& event);

}  // namespace octavo::api
