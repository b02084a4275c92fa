// chat_answer.h - how the answer to a chat is read, and what it may say.
#pragma once

#include <string_view>

#include "api/openai/chat_request.h"

namespace octavo::server {

// Fills in the job's dialect, and its constraint: forced tools, and how long the model may think
// before any grammar begins. Throws RequestError(400).
void prepare_answer(const ChatCall& call, std::string_view prompt, const ServedModel& model,
                    GenerationJob& job);

}  // namespace octavo::server
