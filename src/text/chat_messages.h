// chat_messages.h - what transformers does to messages before a template sees them, and to the text
// after.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace octavo {

// True when `value` nests no deeper than `depth` arrays and objects.
bool nests_within(const nlohmann::ordered_json& value, int depth);

// Numbers, strings, arrays and so on in `value`, itself included.
size_t count_values(const nlohmann::ordered_json& value);

// A message's reasoning under each name that templates read: reasoning_content, and thinking.
void alias_reasoning(nlohmann::ordered_json& messages);

// Leaves the last message open: mark() tags its text before rendering, cut() ends the rendered text
// at the tag. Both throw RequestError when there is no text to continue or the template does not
// show it.
class FinalMessage {
 public:
  void mark(nlohmann::ordered_json& messages);
  std::string cut(std::string rendered) const;

 private:
  std::string text_;
};

}  // namespace octavo
