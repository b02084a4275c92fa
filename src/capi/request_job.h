// request_job.h - request bodies, parsed as `octavo serve` parses them. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "api/openai/completion_request.h"
#include "api/openai/embedding_request.h"

namespace octavo::capi {

// The job of a completion, chat or embedding.
struct RequestJob {
  std::variant<api::GenerationJob, api::CompletionJob, api::EmbeddingJob> job;

  api::GenerationJob& generation();
  const api::GenerationJob& generation() const;
  const api::CompletionJob* completion() const { return std::get_if<api::CompletionJob>(&job); }
  const api::EmbeddingJob* embedding() const { return std::get_if<api::EmbeddingJob>(&job); }
};

// `kind`: completion, chat or embedding. Throws RequestError.
RequestJob prepare_request(std::string_view kind, std::string_view body,
                           const api::ServedModel& model);

}  // namespace octavo::capi
