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
  // `object`: "text_completion"; `id` with its prefix. `job` must outlive this object.
  OpenAiEnvelope(const ServedModel& model, const GenerationJob& job, std::string id,
                 std::string_view object);

  // {"id",...,"choices":[CHOICES]} as a non-streamed response, with usage.
  Json whole(Json choices, const Usage& usage) const;
  // "data: {...}\n\n" with `choices` between the brackets.
  void append_chunk(std::string& out, std::string_view choices, const Usage& usage);
  // The chunk without choices that carries the usage.
  void append_usage(std::string& out, const Usage& usage) const;

 private:
  const ServedModel& model_;
  const GenerationJob& job_;
  Json head_;
  std::string chunk_head_;    // up to and including "choices":[
  bool says_resume_ = false;  // the next chunk must carry `resume`
};

inline constexpr std::string_view kSseDone = "data: [DONE]\n\n";
// "data: {"error":...}" and [DONE].
void append_sse_error(std::string& out, const RequestError& error);

}  // namespace octavo::api
