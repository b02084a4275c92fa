#include "api/fields/prompt_list.h"

#include <fmt/format.h>

#include <utility>

#include "api/fields/field_kinds.h"

namespace octavo::api {

Json prompt_list_schema(size_t max_prompts) {
  const Json text = string_schema(kMaxPromptBytes);
  const Json tokens = filled_tokens_schema();
  const auto list_of = [&](Json items) {
    return Json{
        {"type", "array"}, {"items", std::move(items)}, {"minItems", 1}, {"maxItems", max_prompts}};
  };
  return {{"anyOf", {text, tokens, list_of(text), list_of(tokens)}}};
}

PromptList to_prompts(const Json& value, const std::string& field, size_t max_prompts) {
  PromptList list;
  const auto add_text = [&](const Json& text) {
    list.texts.push_back(to_string(text, field, kMaxPromptBytes));
  };
  if (!value.is_array()) {
    add_text(value);
    return list;
  }
  if (value.empty()) refuse(field, "is an empty list");
  if (value.front().is_number()) {
    list.tokens.push_back(to_tokens(value, field));
    return list;
  }
  if (value.size() > max_prompts)
    refuse(field, fmt::format("has {} prompts; at most {} are allowed", value.size(), max_prompts));
  for (const Json& prompt : value) {
    if (value.front().is_array()) {
      list.tokens.push_back(to_tokens(prompt, field));
    } else {
      add_text(prompt);
    }
  }
  return list;
}

}  // namespace octavo::api
