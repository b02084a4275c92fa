#include "text/chat_messages.h"

#include <string_view>

#include "base/error.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using nlohmann::ordered_json;

// The trailing space shows whether the template trimmed the message.
constexpr std::string_view kTag = "CONTINUE_FINAL_MESSAGE_TAG";
constexpr std::string_view kTagAndSpace = "CONTINUE_FINAL_MESSAGE_TAG ";

[[noreturn]] void refuse(const char* why) {
  throw RequestError(400, "continue_final_message", why);
}

// The text of the last message: its content or the content's last text part.
ordered_json* final_text(ordered_json& messages) {
  if (messages.empty()) return nullptr;
  ordered_json& message = messages.back();
  if (!message.is_object() || !message.contains("content")) return nullptr;
  ordered_json& content = message["content"];
  if (content.is_string()) return &content;
  if (!content.is_array()) return nullptr;
  for (auto part = content.rbegin(); part != content.rend(); ++part) {
    if (part->is_object() && part->contains("text") && (*part)["text"].is_string()) {
      return &(*part)["text"];
    }
  }
  return nullptr;
}

const ordered_json* reasoning_of(const ordered_json& message) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const auto found = message.find(name);
    if (found != message.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

}  // namespace

bool nests_within(const ordered_json& value, int depth) {
  if (!value.is_structured()) return true;
  if (depth == 0) return false;
  for (const ordered_json& item : value) {
    if (!nests_within(item, depth - 1)) return false;
  }
  return true;
}

size_t count_values(const ordered_json& value) {
  size_t count = 1;
  if (value.is_structured()) {
    for (const ordered_json& item : value) count += count_values(item);
  }
  return count;
}

void alias_reasoning(ordered_json& messages) {
  for (ordered_json& message : messages) {
    if (!message.is_object()) continue;
    const ordered_json* reasoning = reasoning_of(message);
    if (reasoning == nullptr) continue;
    ordered_json aliased = {{"thinking", *reasoning}};
    aliased.update(message);
    aliased["reasoning_content"] = *reasoning;
    message = std::move(aliased);
  }
}

void FinalMessage::mark(ordered_json& messages) {
  ordered_json* text = final_text(messages);
  if (text == nullptr) refuse("the final message has no text to continue");
  auto& content = text->get_ref<std::string&>();
  text_ = content;
  content += kTagAndSpace;
}

std::string FinalMessage::cut(std::string rendered) const {
  const size_t tag = rendered.rfind(kTag);
  if (tag == std::string::npos || rendered.find(strip_space(text_)) == std::string::npos) {
    refuse("the chat template does not render the final message verbatim");
  }
  const bool kept_spacing = std::string_view(rendered).substr(tag).starts_with(kTagAndSpace);
  rendered.resize(tag);
  return kept_spacing ? rendered : std::string(strip_space_right(rendered));
}

}  // namespace octavo
