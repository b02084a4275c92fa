// envelope.h - what OpenAI's completions and chats share: id, model, usage, chunks.
#pragma once

#include <string>
#include <string_view>

#include "api/fields/json_text.h"
#include "api/output_events.h"
#include "base/error.h"

namespace octavo::api {

Json usage_json(const Usage& usage);

// null, the stop string or the stop token.
Json stop_reason_of(const OutputEvent& event);
// null or a name.
Json finish_reason_of(const OutputEvent& event);

class OpenAiEnvelope {
 public:
  // `object`: "text_completion"; `id` with its prefix.
  OpenAiEnvelope(const ServedModel& model, std::string id, std::string_view object,
                 bool usage_always);

  // {"id",...,"choices":[CHOICES]} as a non-streamed response, with usage.
  Json whole(Json choices, const Usage& usage) const;
  // "data: {...}\n\n" with `choices` between the brackets.
  void append_chunk(std::string& out, std::string_view choices, const Usage& usage) const;
  // The chunk without choices that carries the usage.
  void append_usage(std::string& out, const Usage& usage) const;

 private:
  Json head_;
  std::string chunk_head_;  // up to and including "choices":[
  bool usage_always_;
};

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// "data: {"error":...}" and [DONE].
void append_sse_error(std::string& out, const RequestError& error);

}  // namespace octavo::api
