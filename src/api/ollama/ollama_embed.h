// ollama_embed.h - /api/embed and the older /api/embeddings of Ollama's API.
#pragma once

#include <chrono>
#include <string>

#include "api/ollama/ollama_request.h"
#include "api/openai/embedding_request.h"
#include "api/output_format.h"

namespace octavo::api {

struct OllamaEmbedRequest {
  OllamaRequest shared = {};   // model, options, keep_alive
  Json body = Json::object();  // of /v1/embeddings
  bool truncates = true;
};

struct OllamaEmbedJob : EmbeddingJob {
  std::string model = {};  // as requested
  bool loads = false;      // there is no text
  bool single = false;     // /api/embeddings: one vector, not normalized
};

const FieldTable<OllamaEmbedRequest>& ollama_embed_fields();
const FieldTable<OllamaEmbedRequest>& ollama_embeddings_fields();

// Text worker. These throw RequestError.
OllamaEmbedJob prepare_ollama_embed(const Json& body, const ServedModel& model,
                                    const Preparation& preparation = {});
OllamaEmbedJob prepare_ollama_embeddings(const Json& body, const ServedModel& model,
                                         const Preparation& preparation = {});

class OllamaEmbedFormat : public WholeFormat {
 public:
  // `arrival`: when the request arrived. `job` must outlive this object.
  OllamaEmbedFormat(const OllamaEmbedJob& job, std::chrono::steady_clock::time_point arrival)
      : job_(job), arrival_(arrival) {}

  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  const OllamaEmbedJob& job_;
  std::chrono::steady_clock::time_point arrival_;
};

// For OpenAPI.
Json ollama_embed_schema();
Json ollama_embeddings_schema();

}  // namespace octavo::api
