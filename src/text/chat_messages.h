// chat_messages.h - transformers' preparation of messages for a chat template, and of the rendered
// text afterwards.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace octavo {

// True when `value` nests no deeper than `depth` arrays and objects.
bool nests_within(const nlohmann::ordered_json& value, int depth);

// The number of JSON values (scalars, arrays, objects) in `value`, including itself.
size_t count_values(const nlohmann::ordered_json& value);

// Copies each message's reasoning to both names templates read: reasoning_content and thinking.
void alias_reasoning(nlohmann::ordered_json& messages);

// Leaves the last message open: mark() appends a tag to its text before rendering, cut() truncates
// the rendered text at the tag. Both throw RequestError if there is no text to continue or the
// template does not render it.
class FinalMessage {
 public:
  void mark(nlohmann::ordered_json& messages);
  std::string cut(std::string rendered) const;

 private:
  std::string text_;
};

}  // namespace octavo
