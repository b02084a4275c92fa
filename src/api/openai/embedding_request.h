// embedding_request.h - the body of /v1/embeddings.
#pragma once

#include "api/fields/prompt_list.h"
#include "api/generation_request.h"
#include "api/openai/truncation.h"
#include "generation/embedding.h"

namespace octavo::api {

struct EmbeddingRequest {
  std::string model = {};
  PromptList input = {};
  bool base64 = false;
  std::optional<int> dimensions = {};
  std::optional<bool> use_activation = {};
  Truncation truncation = {};
  bool add_special_tokens = true;
  std::string request_id = {};
  Request engine = {};  // fields without model-dependent defaults; no prompt
};

struct EmbeddingJob : GenerationJob {
  EmbeddingForm form = {};
  bool base64 = false;  // base64 of little-endian floats instead of a list of numbers
};

const FieldTable<EmbeddingRequest>& embedding_fields();

// Text worker: tokenizes. Throws RequestError, also if the model generates text.
EmbeddingJob prepare_embedding(const Json& body, const ServedModel& model,
                               const Preparation& preparation = {});

}  // namespace octavo::api
