// chat_request.h - the body of /v1/chat/completions, and what /tokenize has in common with it.
#pragma once

#include "api/generation_request.h"
#include "api/openai/tool_fields.h"
#include "text/chat_template.h"

namespace octavo::api {

// The part of a body that becomes a prompt by the chat template.
struct ChatPromptRequest {
  Json messages = {};  // an array of objects, parts of text joined
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

// For tables: messages, add_generation_prompt and the rest of ChatPromptRequest.
const FieldTable<ChatPromptRequest>& chat_prompt_fields();

// Text worker: renders and tokenizes. Throws RequestError.
GenerationJob prepare_chat(const Json& body, const ServedModel& model);
// The prompt alone, however long it is.
std::vector<TokenId> chat_prompt_tokens(const Json& body, const ServedModel& model);
// The template's text, tools included.
std::string render_chat(const ChatPromptRequest& request, const ServedModel& model);

}  // namespace octavo::api
