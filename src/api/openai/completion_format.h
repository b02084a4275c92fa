// completion_format.h - output in the format of /v1/completions.
#pragma once

#include <vector>

#include "api/openai/completion_request.h"
#include "api/openai/envelope.h"
#include "api/output_format.h"

namespace octavo::api {

class CompletionFormat : public OutputFormat {
 public:
  CompletionFormat(const ServedModel& model, const CompletionJob& job);

  void append_event(std::string& out, const OutputEvent& event, const Usage& usage) override;
  void append_end(std::string& out, const Usage& usage) override;
  void append_error(std::string& out, const RequestError& error) override;
  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  // The choice object of an event; the first one includes the echoed prompt.
  Json choice_of(const OutputEvent& event);
  Json logprobs_of(const OutputEvent& event, bool with_prompt);
  Usage counted(const Usage& usage) const;
  const PreparedPrompt& prompt_of(const OutputEvent& event) const;

  const ServedModel& model_;
  const CompletionJob& job_;
  OpenAiEnvelope envelope_;
  struct Choice {
    bool begun = false;
    size_t text_offset = 0;
    // With echo and stream, these arrive before the first token.
    std::vector<TokenLogprobs> prompt_logprobs = {};
  };
  std::vector<Choice> choices_;
};

}  // namespace octavo::api
