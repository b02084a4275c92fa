#include "api/openai/chat_turns.h"

#include <string>
#include <utility>

namespace octavo::api {
namespace {

Json turn_text_part(std::string text) { return {{"type", "text"}, {"text", std::move(text)}}; }

// A text, or the list of parts of a message with images, as such a list.
Json turn_parts(Json content) {
  return content.is_array() ? content : Json::array({turn_text_part(content.get<std::string>())});
}

bool has_content(const Json& message) {
  const auto content = message.find("content");
  return content != message.end() && (content->is_string() || content->is_array());
}

void join_content(Json& content, Json more) {
  if (content.is_string() && more.is_string()) {
    content.get_ref<std::string&>() += '\n' + more.get<std::string>();
    return;
  }
  content = turn_parts(std::move(content));
  content.push_back(turn_text_part("\n"));
  for (Json& part : turn_parts(std::move(more))) content.push_back(std::move(part));
}

// An answer with tool calls or reasoning is a turn of its own.
bool can_join(const Json& last, const Json& next) {
  const Json& role = last["role"];
  if (role != next["role"] || role == "tool" || !has_content(last) || !has_content(next))
    return false;
  return role != "assistant" || (last.size() == 2 && next.size() == 2);
}

}  // namespace

void append_turn(Json& messages, Json message) {
  if (messages.empty() || message["role"] != "user" || !can_join(messages.back(), message)) {
    messages.push_back(std::move(message));
  } else {
    join_content(messages.back()["content"], std::move(message["content"]));
  }
}

Json with_alternating_turns(const Json& messages) {
  Json turns = Json::array();
  bool changed = false;
  for (const Json& message : messages) {
    Json turn = message;
    const bool at_beginning = turns.empty() || (turns.size() == 1 && turns[0]["role"] == "system");
    if (turn["role"] == "system" && !at_beginning) {
      turn["role"] = "user";
      changed = true;
    }
    if (!turns.empty() && can_join(turns.back(), turn)) {
      join_content(turns.back()["content"], std::move(turn["content"]));
      changed = true;
    } else {
      turns.push_back(std::move(turn));
    }
  }
  return changed ? turns : Json();
}

Json with_empty_parameters(const Json& tools) {
  Json complete = tools;
  bool changed = false;
  for (Json& tool : complete) {
    if (!tool.contains("function")) continue;
    Json& parameters = tool["function"]["parameters"];
    if (!parameters.is_null()) continue;
    parameters = {{"type", "object"}, {"properties", Json::object()}};
    changed = true;
  }
  return changed ? complete : Json();
}

}  // namespace octavo::api
