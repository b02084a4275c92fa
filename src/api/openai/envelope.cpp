#include "api/openai/envelope.h"

#include <utility>

#include "api/api_error.h"
#include "api/resume.h"

namespace octavo::api {

Json usage_json(const Usage& usage) {
  Json json = {{"prompt_tokens", usage.prompt_tokens},
               {"completion_tokens", usage.completion_tokens},
               {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
               {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
  if (usage.image_tokens > 0) json["prompt_tokens_details"]["image_tokens"] = usage.image_tokens;
  return json;
}

Json stop_reason_of(const OutputEvent& event) {
  if (!event.stop_string.empty()) return event.stop_string;
  if (event.stop_token) return *event.stop_token;
  return nullptr;
}

Json finish_reason_of(const OutputEvent& event) {
  if (!event.finish) return nullptr;
  return std::string(name_of(*event.finish));
}

OpenAiEnvelope::OpenAiEnvelope(const ServedModel& model, const GenerationJob& job, std::string id,
                               std::string_view object)
    : model_(model), job_(job), says_resume_(job.resumable) {
  head_ = {{"id", std::move(id)},
           {"object", object},
           {"created", job.created},
           {"model", model.answer_name(job.engine.adapter.get())},
           {"system_fingerprint", model.answer_fingerprint(job.engine.adapter.get())}};
  chunk_head_ = "data: " + dump(head_);
  chunk_head_.pop_back();
  chunk_head_ += ",\"choices\":[";
}

Json OpenAiEnvelope::whole(Json choices, const Usage& usage) const {
  Json whole = head_;
  whole["choices"] = std::move(choices);
  whole["usage"] = usage_json(usage);
  if (job_.resumable) whole["resume"] = resume_json(job_, model_, usage);
  return whole;
}

void OpenAiEnvelope::append_chunk(std::string& out, std::string_view choices, const Usage& usage) {
  out += chunk_head_;
  out += choices;
  out += ']';
  if (std::exchange(says_resume_, false))
    out += ",\"resume\":" + dump(resume_json(job_, model_, usage));
  if (job_.continuous_usage_stats) out += ",\"usage\":" + dump(usage_json(usage));
  out += "}\n\n";
}

void OpenAiEnvelope::append_usage(std::string& out, const Usage& usage) const {
  out += chunk_head_;
  out += "],\"usage\":" + dump(usage_json(usage)) + "}\n\n";
}

void append_sse_error(std::string& out, const RequestError& error) {
  out += "data: " + error_body(error.status(), error.what(), error.param()) + "\n\n";
  out += kSseDone;
}

}  // namespace octavo::api
