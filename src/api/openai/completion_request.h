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
  bool echo = false;         // return the prompt before the output
  bool prompt_only = false;  // max_tokens 0: no output
};

const FieldTable<CompletionRequest>& completion_fields();

// Text worker: tokenizes. Throws RequestError.
CompletionJob prepare_completion(const Json& body, const ServedModel& model,
                                 const Preparation& preparation = {});

}  // namespace octavo::api
