// messages_request.h - the body of /v1/messages, Anthropic's API, and of /v1/messages/count_tokens.
#pragma once

#include "api/openai/chat_translation.h"

namespace octavo::api {

struct MessagesRequest : ChatTranslation {
  Json system = {};
  Json messages = {};
};

const FieldTable<MessagesRequest>& messages_fields();

// Text worker: as prepare_chat. Throws RequestError.
GenerationJob prepare_messages(const Json& body, const ServedModel& model,
                               const Preparation& preparation = {});
// {"input_tokens"}
Json count_message_tokens(const Json& body, const ServedModel& model,
                          const Preparation& preparation = {});

}  // namespace octavo::api
