// request_job.h - a body read as `octavo serve` reads it. Any thread.
#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "api/openai/completion_request.h"
#include "api/openai/embedding_request.h"

namespace octavo::capi {

// What a body of any kind becomes.
struct RequestJob {
  std::variant<server::GenerationJob, server::CompletionJob, server::EmbeddingJob> job;

  server::GenerationJob& generation();
  const server::GenerationJob& generation() const;
  const server::CompletionJob* completion() const {
    return std::get_if<server::CompletionJob>(&job);
  }
  const server::EmbeddingJob* embedding() const { return std::get_if<server::EmbeddingJob>(&job); }
};

// `kind`: completion, chat or embedding. Throws RequestError.
RequestJob prepare_request(std::string_view kind, std::string_view body,
                           const server::ServedModel& model);

}  // namespace octavo::capi
