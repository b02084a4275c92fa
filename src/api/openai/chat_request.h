// chat_request.h - the body of /v1/chat/completions, and the part it shares with /tokenize.
#pragma once

#include <vector>

#include "api/generation_request.h"
#include "api/images/image_source.h"
#include "api/openai/tool_fields.h"
#include "text/chat_template.h"

namespace octavo::api {

// The fields that the chat template renders to a prompt.
struct ChatPromptRequest {
  Json messages = {};                    // an array of objects, text parts joined
  std::vector<ImageSource> images = {};  // of the messages, in order
  RenderOptions render = {};
  ToolCallFields tools = {};
};

struct ChatRequest : GenerationRequest {
  ChatPromptRequest chat = {};
  bool logprobs = false;
  std::optional<int> top_logprobs = {};
  std::optional<int> thinking_token_budget = {};
};

const FieldTable<ChatRequest>& chat_fields();

// The fields of ChatPromptRequest, for use in other tables.
const FieldTable<ChatPromptRequest>& chat_prompt_fields();

// Text worker: renders and tokenizes. Throws RequestError.
GenerationJob prepare_chat(const Json& body, const ServedModel& model,
                           const Preparation& preparation = {});
// The same for the body of a translation, whose messages refer to `images` (translated_image()).
GenerationJob prepare_translated_chat(const Json& body, std::vector<ImageSource> images,
                                      const ServedModel& model, const Preparation& preparation);
// The prompt alone; it may be longer than the context (kCountedContexts).
std::vector<TokenId> chat_prompt_tokens(const Json& body, const ServedModel& model,
                                        const Preparation& preparation = {},
                                        std::vector<ImageSource> images = {});
// The same for fields that have been read.
std::vector<TokenId> counted_chat_tokens(const ChatPromptRequest& request, bool add_special_tokens,
                                         const ServedModel& model, const Preparation& preparation);
// The rendered template, including tools. Special tokens in the content are marked. Throws
// RequestError(400) for images if the model takes none.
PromptText render_chat(const ChatPromptRequest& request, const ServedModel& model,
                       const Preparation& preparation = {});

}  // namespace octavo::api
