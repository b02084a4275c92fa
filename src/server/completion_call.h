// completion_call.h - the body of /v1/completions.
#pragma once

#include "server/generation_call.h"
#include "server/prompt_list.h"

namespace octavo::server {

struct CompletionCall : GenerationCall {
  PromptList prompts = {};
  bool echo = false;
};

struct CompletionJob : GenerationJob {
  bool echo = false;         // the prompt's text before the answer's
  bool prompt_only = false;  // and no answer: max_tokens 0
};

const FieldTable<CompletionCall>& completion_fields();

// Text worker: tokenizes. Throws RequestError.
CompletionJob prepare_completion(const Json& body, const ServedModel& model);

}  // namespace octavo::server
