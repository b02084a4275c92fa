// embedding_format.h - output in the format of /v1/embeddings.
#pragma once

#include <span>
#include <string>

#include "api/openai/embedding_request.h"
#include "api/output_format.h"

namespace octavo::api {

class EmbeddingFormat : public WholeFormat {
 public:
  EmbeddingFormat(const ServedModel& model, const EmbeddingJob& job) : model_(model), job_(job) {}

  // Throws RequestError(500) if a vector is not finite.
  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  const ServedModel& model_;
  const EmbeddingJob& job_;
};

// A list of numbers, each the shortest decimal that reads back as the same float; or base64 in
// quotes.
void append_embedding(std::string& out, std::span<const float> vector, bool base64);

Json embedding_schema();

}  // namespace octavo::api
