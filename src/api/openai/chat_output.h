// chat_output.h - how the answer to a chat is read, and what it may say.
#pragma once

#include <string_view>

#include "api/openai/chat_request.h"

namespace octavo::api {

// Fills in the job's dialect, and its constraint: forced tools, and how long the model may think
// before any grammar begins. Throws RequestError(400).
void prepare_output(const ChatRequest& request, std::string_view prompt, const ServedModel& model,
                    GenerationJob& job);

}  // namespace octavo::api
