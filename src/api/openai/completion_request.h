// completion_request.h - the body of /v1/completions.
#pragma once

#include "api/fields/prompt_list.h"
#include "api/generation_request.h"

namespace octavo::api {

struct CompletionRequest : GenerationRequest {
  PromptList prompts = {};
  bool echo = false;
};

struct CompletionJob : GenerationJob {
  bool echo = false;         // the prompt's text before the answer's
  bool prompt_only = false;  // and no answer: max_tokens 0
};

const FieldTable<CompletionRequest>& completion_fields();

// Text worker: tokenizes. Throws RequestError.
CompletionJob prepare_completion(const Json& body, const ServedModel& model);

}  // namespace octavo::api
