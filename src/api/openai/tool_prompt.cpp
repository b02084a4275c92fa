#include "api/openai/tool_prompt.h"

#include <utility>
#include <vector>

#include "api/openai/chat_turns.h"
#include "text/dialects/call_text.h"

namespace octavo::api {
namespace {

// Arguments that are not an object stay text, as the model wrote them.
void parse_arguments(Json& function) {
  const auto arguments = function.find("arguments");
  if (arguments == function.end() || !arguments->is_string()) return;
  const auto& text = arguments->get_ref<const std::string&>();
  Json parsed = text.empty() ? Json::object() : Json::parse(text, nullptr, false);
  if (parsed.is_object()) *arguments = std::move(parsed);
}

void shorten(Json& holder, const char* key, size_t length) {
  const auto id = holder.find(key);
  if (id == holder.end() || !id->is_string()) return;
  std::string letters;
  for (const char c : id->get_ref<const std::string&>()) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (plain) letters += c;
  }
  if (letters.size() < length) letters.insert(0, length - letters.size(), '0');
  *id = letters.substr(letters.size() - length);
}

std::string tools_text(const Json& tools, const ToolDialect& dialect) {
  std::string text =
      "You can call functions. Here they are, one on each line, with the JSON schema of their "
      "parameters:\n<tools>\n";
  for (const Json& tool : tools) text += dump(tool["function"]) + '\n';
  const std::vector<ToolCall> example = {{"function_name", {{"parameter", "value"}}}};
  text += "</tools>\nTo call a function, write exactly this with its name and arguments:\n";
  return text + call_text(dialect, example);
}

std::string calls_as_text(const Json& message, const ToolDialect& dialect) {
  std::vector<ToolCall> calls;
  for (const Json& call : message["tool_calls"]) {
    const Json& function = call["function"];
    calls.push_back({function.value("name", ""), function.value("arguments", Json::object())});
    if (!calls.back().arguments.is_object()) calls.back().arguments = Json::object();
  }
  const Json content = message.value("content", Json());
  std::string text = content.is_string() ? content.get<std::string>() : "";
  if (!text.empty()) text += '\n';
  return text + call_text(dialect, calls);
}

Json as_text_part(std::string text) { return {{"type", "text"}, {"text", std::move(text)}}; }

// The content of a result as that of a user message.
Json response_of(const Json& content) {
  const std::string open = "<tool_response>\n";
  const std::string close = "\n</tool_response>";
  if (!content.is_array()) return open + content.get<std::string>() + close;
  Json parts = content;
  parts.insert(parts.begin(), as_text_part(open));
  parts.push_back(as_text_part(close));
  return parts;
}

}  // namespace

void prepare_tool_calls(Json& messages, const ToolDialect* dialect) {
  const auto length = dialect == nullptr ? size_t{0} : static_cast<size_t>(dialect->id_length);
  for (Json& message : messages) {
    if (length > 0) shorten(message, "tool_call_id", length);
    const auto calls = message.find("tool_calls");
    if (calls == message.end()) continue;
    // Templates test for the presence of the key.
    if (calls->is_null() || calls->empty()) {
      message.erase("tool_calls");
      continue;
    }
    for (Json& call : *calls) {
      parse_arguments(call["function"]);
      if (length > 0) shorten(call, "id", length);
    }
  }
}

Json with_tools_as_text(const Json& messages, const Json& tools, const ToolDialect& dialect) {
  Json shown = Json::array();
  if (!tools.is_null()) {
    std::string text = tools_text(tools, dialect);
    const bool has_system = !messages.empty() && messages[0]["role"] == "system";
    if (has_system && messages[0]["content"].is_string())
      text = messages[0]["content"].get<std::string>() + "\n\n" + text;
    shown.push_back({{"role", "system"}, {"content", std::move(text)}});
  }
  for (const Json& message : messages) {
    if (&message == &messages.front() && !shown.empty() && message["role"] == "system") continue;
    Json copy = message;
    if (message["role"] == "tool") {
      copy = {{"role", "user"}, {"content", response_of(message["content"])}};
    } else if (message.contains("tool_calls")) {
      copy["content"] = calls_as_text(message, dialect);
      copy.erase("tool_calls");
    }
    const bool from_tool = message["role"] == "tool";
    const bool after_tool = &message != &messages.front() && (&message)[-1]["role"] == "tool";
    if (from_tool || after_tool) {
      append_turn(shown, std::move(copy));  // many templates require alternating turns
    } else {
      shown.push_back(std::move(copy));
    }
  }
  return shown;
}

}  // namespace octavo::api
