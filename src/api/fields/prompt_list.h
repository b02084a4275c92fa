// prompt_list.h - the values a prompt field accepts: a string, token ids, or a list of either.
#pragma once

#include <string>
#include <vector>

#include "api/fields/json_values.h"

namespace octavo::api {

inline constexpr size_t kMaxPromptBytes = 8u << 20;

// One of the two has an entry per prompt; the other is empty.
struct PromptList {
  std::vector<std::string> texts = {};
  std::vector<std::vector<TokenId>> tokens = {};
};

Json prompt_list_schema(size_t max_prompts);
// Throws RequestError(400) naming `field`.
PromptList to_prompts(const Json& value, const std::string& field, size_t max_prompts);

}  // namespace octavo::api
