// chat_output.h - how the output of a chat is parsed and constrained.
#pragma once

#include <string_view>

#include "api/openai/chat_request.h"

namespace octavo::api {

// Sets the job's output parser and its constraint: structured output, forced tool calls and the
// reasoning budget before them. Throws RequestError(400).
void prepare_output(const ChatRequest& request, std::string_view prompt, const ServedModel& model,
                    GenerationJob& job, const Preparation& preparation);

}  // namespace octavo::api
