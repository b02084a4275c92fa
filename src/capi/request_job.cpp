#include "capi/request_job.h"

#include "api/openai/chat_request.h"
#include "api/request_id.h"
#include "base/error.h"

namespace octavo::capi {

api::GenerationJob& RequestJob::generation() {
  return std::visit([](auto& one) -> api::GenerationJob& { return one; }, job);
}

const api::GenerationJob& RequestJob::generation() const {
  return std::visit([](const auto& one) -> const api::GenerationJob& { return one; }, job);
}

namespace {

RequestJob prepare(std::string_view kind, std::string_view text, const api::ServedModel& model) {
  const api::Json body = api::parse_object(text);
  if (kind == "chat") return {api::prepare_chat(body, model)};
  if (kind == "completion") return {api::prepare_completion(body, model)};
  if (kind == "embedding") return {api::prepare_embedding(body, model)};
  if (kind == "score") return {api::prepare_score(body, model)};
  throw RequestError(400, "kind", "must be completion, chat, embedding or score");
}

}  // namespace

RequestJob prepare_request(std::string_view kind, std::string_view body,
                           const api::ServedModel& model) {
  RequestJob job = prepare(kind, body, model);
  if (const auto* completion = job.completion(); completion != nullptr && completion->echo)
    throw RequestError(400, "echo", "is not supported; the caller already has the prompt");
  if (job.generation().resumable || !job.generation().resumed.empty())
    throw RequestError(400, job.generation().resumable ? "resumable" : "resume_token_ids",
                       "is supported by the server only");
  if (job.generation().id.empty()) job.generation().id = api::fresh_request_id();
  return job;
}

}  // namespace octavo::capi
