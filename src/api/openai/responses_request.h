// responses_request.h - the body of /v1/responses.
#pragma once

#include "api/openai/chat_translation.h"
#include "api/openai/response_store.h"

namespace octavo::api {

struct ResponsesRequest : ChatTranslation {
  Json input = {};  // items
  Json instructions = {};
  Json tools = {};
  Json tool_choice = {};
  PreviousResponse previous = {};
  bool store = true;
  bool encrypted_reasoning = false;
  Json echo = Json::object();  // fields repeated in the response
};

const FieldTable<ResponsesRequest>& responses_fields();

struct ResponsesJob : GenerationJob {
  Json head = {};          // the response object without its output
  int64_t head_bytes = 0;  // about the memory of `head`, which repeats the request's tools
  std::string input = {};  // this request's own items as JSON; empty unless it is stored
  PreviousResponse previous = {};
  bool store = true;  // false also if the input is too long to be stored
  bool encrypted_reasoning = false;
};

// The stored responses of one owner.
struct ResponseShelf {
  ResponseStore& store;
  std::string owner = {};

  // Throws RequestError(404) naming `field` (may be empty) if not found.
  std::shared_ptr<const StoredResponse> get(const std::string& id, const std::string& field) const;
};

// Text worker: as prepare_chat. Throws RequestError.
ResponsesJob prepare_responses(const Json& body, const ServedModel& model,
                               const ResponseShelf& shelf, const Preparation& preparation = {});
// {"object":"response.input_tokens","input_tokens"}
Json count_response_tokens(const Json& body, const ServedModel& model, const ResponseShelf& shelf,
                           const Preparation& preparation = {});

}  // namespace octavo::api
