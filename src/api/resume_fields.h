// resume_fields.h - the request fields that continue an interrupted answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields/json_values.h"

namespace octavo::api {

// The request field `resume`: what the first event of the interrupted answer said about it. It comes
// from the client, so nothing in it is trusted.
struct ResumeFacts {
  std::string id = {};  // of the response, without its prefix; tool call ids follow from it
  std::optional<int64_t> created = {};             // Unix seconds
  std::optional<int64_t> seed = {};                // as drawn, if the request had none
  std::string fingerprint = {};                    // empty: not checked
  std::vector<std::vector<TokenId>> prompts = {};  // empty: the request's own prompts
  std::optional<int> cached_tokens = {};           // of the prompt, for the usage
};

// These throw RequestError(400).
ResumeFacts read_resume(const Json& value);
std::vector<std::vector<TokenId>> read_resume_tokens(const Json& value);

// For OpenAPI.
Json resume_schema();
Json resume_tokens_schema();

}  // namespace octavo::api
