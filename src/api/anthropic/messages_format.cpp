#include "api/anthropic/messages_format.h"

#include <fmt/format.h>

#include <utility>

#include "api/api_error.h"
#include "api/named_event.h"

namespace octavo::api {
namespace {

// Clients return thinking with its signature, which is not checked.
constexpr std::string_view kSignature = "octavo";

Json usage_of(const Usage& usage) {
  return {{"input_tokens", usage.prompt_tokens - usage.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.cached_tokens},
          {"output_tokens", usage.completion_tokens}};
}

// {"stop_reason","stop_sequence"}
Json end_of(const OutputEvent& event, bool called) {
  Json end = {{"stop_reason", "end_turn"}, {"stop_sequence", nullptr}};
  if (event.finish == FinishReason::kLength) {
    end["stop_reason"] = "max_tokens";
  } else if (!event.stop_string.empty()) {
    end["stop_reason"] = "stop_sequence";
    end["stop_sequence"] = event.stop_string;
  } else if (called) {
    end["stop_reason"] = "tool_use";
  }
  return end;
}

// A call cut off by max_tokens has no valid object.
Json input_of(const std::string& arguments) {
  Json input = Json::parse(arguments, nullptr, false);
  return input.is_object() ? input : Json::object();
}

// The block that a part starts, without its content.
Json empty_block(const OutputPart& part) {
  switch (part.kind) {
    case PartKind::kContent:
      return {{"type", "text"}, {"text", ""}};
    case PartKind::kReasoning:
      return {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}};
    default:
      return {
          {"type", "tool_use"}, {"id", part.id}, {"name", part.name}, {"input", Json::object()}};
  }
}

// Whether the part continues the block.
bool continues(const Json& block, const OutputPart& part) {
  const Json& type = block.at("type");
  return (part.kind == PartKind::kContent && type == "text") ||
         (part.kind == PartKind::kReasoning && type == "thinking") ||
         part.kind == PartKind::kToolArguments;
}

Json content_of(const std::vector<OutputPart>& parts) {
  Json content = Json::array();
  std::string text;
  const auto finish_block = [&] {
    if (content.empty()) return;
    Json& block = content.back();
    if (block["type"] == "text") {
      block["text"] = std::move(text);
    } else if (block["type"] == "thinking") {
      block["thinking"] = std::move(text);
      block["signature"] = kSignature;
    } else {
      block["input"] = input_of(text);
    }
    text.clear();
  };
  for (const OutputPart& part : parts) {
    if (content.empty() || !continues(content.back(), part)) {
      finish_block();
      content.push_back(empty_block(part));
    }
    text += part.text;
  }
  finish_block();
  return content;
}

bool calls_a_tool(const std::vector<OutputPart>& parts) {
  return std::ranges::any_of(parts,
                             [](const auto& part) { return part.kind == PartKind::kToolCall; });
}

}  // namespace

MessagesFormat::MessagesFormat(const ServedModel& model, const GenerationJob& job)
    : model_(model),
      job_(job),
      head_({{"id", "msg_" + job.id},
             {"type", "message"},
             {"role", "assistant"},
             {"model", model.answer_name(job.engine.adapter.get())}}),
      tokens_(job) {}

void MessagesFormat::begin(std::string& out, const Usage& usage) {
  begun_ = true;
  Json message = head_;
  message["content"] = Json::array();
  message["stop_reason"] = nullptr;
  message["stop_sequence"] = nullptr;
  message["usage"] = usage_of(usage);
  Json event = {{"type", "message_start"}, {"message", std::move(message)}};
  if (job_.resumable) event["resume"] = resume_json(job_, model_, usage);
  append_named_event(out, "message_start", dump(event));
}

void MessagesFormat::open(std::string& out, Block block, const OutputPart& part) {
  close(out);
  open_ = block;
  ++index_;
  append_named_event(out, "content_block_start",
                     dump({{"type", "content_block_start"},
                           {"index", index_},
                           {"content_block", empty_block(part)}}));
  if (!std::exchange(pinged_, true)) append_named_event(out, "ping", R"({"type":"ping"})");
}

// Written by hand because it runs for every token.
void MessagesFormat::append_delta(std::string& out, std::string_view kind, std::string_view field,
                                  std::string_view text) const {
  std::string data =
      fmt::format(R"({{"type":"content_block_delta","index":{},"delta":{{"type":"{}","{}":)",
                  index_, kind, field);
  append_json_string(data, text);
  data += "}}";
  append_named_event(out, "content_block_delta", data);
}

void MessagesFormat::close(std::string& out) {
  if (open_ == Block::kNone) return;
  if (open_ == Block::kThinking) append_delta(out, "signature_delta", "signature", kSignature);
  append_named_event(out, "content_block_stop",
                     fmt::format(R"({{"type":"content_block_stop","index":{}}})", index_));
  open_ = Block::kNone;
}

void MessagesFormat::append_part(std::string& out, const OutputPart& part) {
  switch (part.kind) {
    case PartKind::kContent:
      if (open_ != Block::kText) open(out, Block::kText, part);
      append_delta(out, "text_delta", "text", part.text);
      break;
    case PartKind::kReasoning:
      if (open_ != Block::kThinking) open(out, Block::kThinking, part);
      append_delta(out, "thinking_delta", "thinking", part.text);
      break;
    case PartKind::kToolCall:
      called_ = true;
      open(out, Block::kToolUse, part);
      break;
    case PartKind::kToolArguments:
      append_delta(out, "input_json_delta", "partial_json", part.text);
      break;
  }
}

void MessagesFormat::append_event(std::string& out, const OutputEvent& event, const Usage& usage) {
  if (event.tokens.empty() && !event.finish) return;
  const size_t start = out.size();
  if (!begun_) begin(out, usage);
  for (const OutputPart& part : event.parts) append_part(out, part);
  if (event.finish) {
    close(out);
    delta_ = end_of(event, called_);
  }
  tokens_.add(event.tokens);
  tokens_.write(out, start);
}

void MessagesFormat::append_end(std::string& out, const Usage& usage) {
  const size_t start = out.size();
  append_named_event(
      out, "message_delta",
      dump({{"type", "message_delta"}, {"delta", delta_}, {"usage", usage_of(usage)}}));
  tokens_.write(out, start);
  append_named_event(out, "message_stop", R"({"type":"message_stop"})");
}

void MessagesFormat::append_error(std::string& out, const RequestError& error) {
  append_named_event(out, "error", anthropic_error_body(error.status(), error.what()));
}

std::string MessagesFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  const OutputEvent& answer = answers.front();
  Json message = head_;
  message["content"] = content_of(answer.parts);
  message.update(end_of(answer, calls_a_tool(answer.parts)));
  message["usage"] = usage_of(usage);
  if (job_.resumable) {
    message["token_ids"] = answer.tokens;
    message["resume"] = resume_json(job_, model_, usage);
  }
  return dump(message);
}

Json message_schema() {
  const Json block = {
      {"type", "object"},
      {"properties", {{"type", {{"type", "string"}, {"enum", {"text", "thinking", "tool_use"}}}}}},
      {"required", Json::array({"type"})}};
  const auto typed = [](Json type) -> Json { return {{"type", std::move(type)}}; };
  const Json usage = {{"type", "object"},
                      {"properties",
                       {{"input_tokens", typed("integer")},
                        {"cache_creation_input_tokens", typed("integer")},
                        {"cache_read_input_tokens", typed("integer")},
                        {"output_tokens", typed("integer")}}},
                      {"required", {"input_tokens", "output_tokens"}}};
  return {
      {"type", "object"},
      {"properties",
       {{"id", typed("string")},
        {"type", typed("string")},
        {"role", typed("string")},
        {"model", typed("string")},
        {"content", {{"type", "array"}, {"items", block}}},
        {"stop_reason",
         {{"type", "string"}, {"enum", {"end_turn", "max_tokens", "stop_sequence", "tool_use"}}}},
        {"stop_sequence", typed(Json::array({"string", "null"}))},
        {"usage", usage}}},
      {"required",
       {"id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"}}};
}

}  // namespace octavo::api
