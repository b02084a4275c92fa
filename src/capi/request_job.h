// request_job.h - request bodies, parsed as `octavo serve` parses them. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "api/openai/completion_request.h"
#include "api/openai/embedding_request.h"
#include "api/openai/score_request.h"

namespace octavo::capi {

// The job of a completion, chat, embedding or score.
struct RequestJob {
  std::variant<api::GenerationJob, api::CompletionJob, api::EmbeddingJob, api::ScoringJob> job;

  api::GenerationJob& generation();
  const api::GenerationJob& generation() const;
  const api::CompletionJob* completion() const { return std::get_if<api::CompletionJob>(&job); }
  const api::EmbeddingJob* embedding() const { return std::get_if<api::EmbeddingJob>(&job); }
  const api::ScoringJob* scoring() const { return std::get_if<api::ScoringJob>(&job); }
};

// `kind`: completion, chat, embedding or score. Throws RequestError.
RequestJob prepare_request(std::string_view kind, std::string_view body,
                           const api::ServedModel& model);

}  // namespace octavo::capi
