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
  std::string previous = {};  // response id
  bool store = true;
  bool encrypted_reasoning = false;
  Json echo = Json::object();  // fields repeated in the response
};

const FieldTable<ResponsesRequest>& responses_fields();

struct ResponsesJob : GenerationJob {
  Json head = {};   // the response object without its output
  Json input = {};  // this request's own items
  std::string previous = {};
  bool store = true;
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
                               const ResponseShelf& shelf);
// {"object":"response.input_tokens","input_tokens"}
Json count_response_tokens(const Json& body, const ServedModel& model, const ResponseShelf& shelf);

}  // namespace octavo::api
