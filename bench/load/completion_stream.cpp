#include "bench/load/completion_stream.h"

#include <nlohmann/json.hpp>

#include "bench/load/server_error.h"

namespace octavo::bench {
namespace {

using Json = nlohmann::json;

bool has_value(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && !found->is_null() && *found != "";
}

// The first chat chunk contains only the role and the last only the finish reason. They carry no
// token and do not count for inter-token latency. An otherwise empty chunk does: its token's bytes
// do not yet form a whole character.
bool carries_token(const Json& choice) {
  if (has_value(choice, "text")) return true;
  const auto delta = choice.find("delta");
  if (delta != choice.end() && delta->is_object()) {
    for (const char* name : {"content", "reasoning_content", "reasoning", "tool_calls"})
      if (has_value(*delta, name)) return true;
    if (has_value(*delta, "role")) return false;
  }
  return !has_value(choice, "finish_reason");
}

}  // namespace

void CompletionStream::receive(std::string_view bytes, double seconds) {
  parser_.feed(bytes, [&](std::string_view data) { on_event(data, seconds); });
}

void CompletionStream::on_event(std::string_view data, double seconds) {
  if (saw_done_ || !error_.empty()) return;
  if (data == "[DONE]") {
    saw_done_ = true;
    return;
  }
  const Json event = Json::parse(data, nullptr, false);
  if (!event.is_object()) {
    error_ = "an event is not a JSON object";
    return;
  }
  const auto choices = event.find("choices");
  const bool has_choices = choices != event.end() && choices->is_array();
  if (!has_choices) {
    const std::string sentence = error_sentence(event);
    if (!sentence.empty()) error_ = "error event: " + sentence;
  } else if (!choices->empty()) {
    const Json& choice = choices->front();
    record_.last = seconds;
    if (!saw_choices_) record_.first = seconds;
    saw_choices_ = true;
    if (carries_token(choice)) record_.chunks.push_back(seconds);
    saw_finish_ = saw_finish_ || has_value(choice, "finish_reason");
  }
  if (const auto usage = event.find("usage"); usage != event.end() && usage->is_object()) {
    const auto tokens = usage->find("completion_tokens");
    if (tokens == usage->end() || !tokens->is_number_integer()) return;
    record_.output_tokens = tokens->get<int>();
    saw_usage_ = true;
  }
}

void CompletionStream::finish(const std::string& transport_error) {
  if (!saw_usage_) record_.output_tokens = static_cast<int>(record_.chunks.size());
  record_.chunks_counted = !saw_usage_;
  record_.failure.clear();
  if (!error_.empty()) {
    record_.failure = error_;
  } else if (!saw_done_ && !transport_error.empty()) {
    record_.failure = transport_error;
  } else if (!saw_choices_) {
    record_.failure = "the response contains no choices";
  } else if (!saw_done_ && !saw_finish_) {
    record_.failure = "the stream ended before the response was complete";
  }
}

}  // namespace octavo::bench
