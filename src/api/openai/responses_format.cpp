#include "api/openai/responses_format.h"

#include <fmt/format.h>

#include <utility>

#include "api/named_event.h"
#include "api/openai/responses_input.h"

namespace octavo::api {
namespace {

Json usage_of(const Usage& usage) {
  Json json = {
      {"input_tokens", usage.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", usage.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", usage.completion_tokens},
      {"output_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}},
      {"total_tokens", usage.prompt_tokens + usage.completion_tokens}};
  if (usage.image_tokens > 0) json["input_tokens_details"]["image_tokens"] = usage.image_tokens;
  return json;
}

}  // namespace

ResponsesFormat::ResponsesFormat(const ServedModel& model, const ResponsesJob& job, Keep keep)
    : model_(model), job_(job), keep_(std::move(keep)), response_(job.head), tokens_(job) {
  response_["id"] = "resp_" + job.id;
}

void ResponsesFormat::append(std::string& out, std::string_view type, Json fields) {
  Json event = {{"type", type}, {"sequence_number", sequence_++}};
  event.update(std::move(fields));
  append_named_event(out, type, dump(event));
}

void ResponsesFormat::append_state(std::string& out, std::string_view type) {
  append(out, type, {{"response", response_}});
}

// Written by hand because it runs for every token.
void ResponsesFormat::append_delta(std::string& out, std::string_view type, std::string_view text) {
  item_text_ += text;
  std::string data =
      fmt::format(R"({{"type":"{}","sequence_number":{},"item_id":{},"output_index":{},)", type,
                  sequence_++, dump(item_["id"]), response_["output"].size());
  if (open_ != Item::kCall) data += R"("content_index":0,)";
  if (open_ == Item::kMessage) data += R"("logprobs":[],)";
  data += "\"delta\":";
  append_json_string(data, text);
  data += '}';
  append_named_event(out, type, data);
}

Json ResponsesFormat::content_part() const {
  if (open_ == Item::kReasoning) return {{"type", "reasoning_text"}, {"text", item_text_}};
  return {{"type", "output_text"},
          {"text", item_text_},
          {"annotations", Json::array()},
          {"logprobs", Json::array()}};
}

void ResponsesFormat::open(std::string& out, Item item, const OutputPart& part) {
  close(out, "completed");
  open_ = item;
  item_text_.clear();
  const size_t index = response_["output"].size();
  const auto id = [&](const char* kind) { return fmt::format("{}_{}_{}", kind, job_.id, index); };
  switch (item) {
    case Item::kMessage:
      item_ = {{"id", id("msg")},
               {"type", "message"},
               {"status", "in_progress"},
               {"role", "assistant"},
               {"content", Json::array()}};
      break;
    case Item::kReasoning:
      item_ = {{"id", id("rs")},           {"type", "reasoning"},
               {"status", "in_progress"},  {"summary", Json::array()},
               {"content", Json::array()}, {"encrypted_content", nullptr}};
      break;
    case Item::kCall:
      item_ = {{"id", id("fc")},     {"type", "function_call"}, {"status", "in_progress"},
               {"call_id", part.id}, {"name", part.name},       {"arguments", ""}};
      break;
  }
  append(out, "response.output_item.added", {{"output_index", index}, {"item", item_}});
  if (item != Item::kCall)
    append(out, "response.content_part.added",
           {{"item_id", item_["id"]},
            {"output_index", index},
            {"content_index", 0},
            {"part", content_part()}});
}

void ResponsesFormat::close(std::string& out, const char* status) {
  if (!open_) return;
  const size_t index = response_["output"].size();
  Json place = {{"item_id", item_["id"]}, {"output_index", index}};
  if (open_ == Item::kCall) {
    item_["arguments"] = item_text_;
    place["arguments"] = item_text_;
    append(out, "response.function_call_arguments.done", std::move(place));
  } else {
    place["content_index"] = 0;
    Json done = place;
    done["text"] = item_text_;
    if (open_ == Item::kMessage) done["logprobs"] = Json::array();
    append(out,
           open_ == Item::kMessage ? "response.output_text.done" : "response.reasoning_text.done",
           std::move(done));
    place["part"] = content_part();
    item_["content"].push_back(place["part"]);
    append(out, "response.content_part.done", std::move(place));
    if (open_ == Item::kReasoning && job_.encrypted_reasoning)
      item_["encrypted_content"] = packed_reasoning(item_text_);
  }
  item_["status"] = status;
  append(out, "response.output_item.done", {{"output_index", index}, {"item", item_}});
  response_["output"].push_back(std::move(item_));
  open_.reset();
}

void ResponsesFormat::append_part(std::string& out, const OutputPart& part) {
  switch (part.kind) {
    case PartKind::kContent:
      if (open_ != Item::kMessage) open(out, Item::kMessage, part);
      append_delta(out, "response.output_text.delta", part.text);
      break;
    case PartKind::kReasoning:
      if (open_ != Item::kReasoning) open(out, Item::kReasoning, part);
      append_delta(out, "response.reasoning_text.delta", part.text);
      break;
    case PartKind::kToolCall:
      open(out, Item::kCall, part);
      break;
    case PartKind::kToolArguments:
      append_delta(out, "response.function_call_arguments.delta", part.text);
      break;
  }
}

void ResponsesFormat::finish(const OutputEvent& event) {
  const bool cut = event.finish == FinishReason::kLength;
  response_["status"] = cut ? "incomplete" : "completed";
  if (cut) response_["incomplete_details"] = {{"reason", "max_output_tokens"}};
}

void ResponsesFormat::complete(const Usage& usage) {
  response_["usage"] = usage_of(usage);
  if (job_.store && keep_) response_["store"] = keep_(response_);
}

void ResponsesFormat::begin(std::string& out, const Usage& usage) {
  Json created = {{"response", response_}};
  if (job_.resumable) created["resume"] = resume_json(job_, model_, usage);
  append(out, "response.created", std::move(created));
  append_state(out, "response.in_progress");
}

void ResponsesFormat::append_event(std::string& out, const OutputEvent& event, const Usage& usage) {
  if (event.tokens.empty() && !event.finish) return;
  const size_t start = out.size();
  if (!std::exchange(begun_, true)) begin(out, usage);
  for (const OutputPart& part : event.parts) append_part(out, part);
  if (event.finish) {
    close(out, event.finish == FinishReason::kLength ? "incomplete" : "completed");
    finish(event);
  }
  tokens_.add(event.tokens);
  tokens_.write(out, start);
}

void ResponsesFormat::append_end(std::string& out, const Usage& usage) {
  complete(usage);
  const size_t start = out.size();
  append_state(out,
               response_["status"] == "completed" ? "response.completed" : "response.incomplete");
  tokens_.write(out, start);
}

void ResponsesFormat::append_error(std::string& out, const RequestError& error) {
  append(out, "error",
         {{"code", error.status() == 503 ? "server_unavailable" : "server_error"},
          {"message", error.what()},
          {"param", nullptr}});
  response_["status"] = "failed";
  response_["error"] = {{"code", "server_error"}, {"message", error.what()}};
  append_state(out, "response.failed");
}

std::string ResponsesFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  const OutputEvent& answer = answers.front();
  std::string events;  // discarded; response_ accumulates the result
  append_event(events, answer, usage);
  complete(usage);
  if (job_.resumable) {
    response_["token_ids"] = answer.tokens;
    response_["resume"] = resume_json(job_, model_, usage);
  }
  return dump(response_);
}

Json response_schema() {
  const auto typed = [](Json type) -> Json { return {{"type", std::move(type)}}; };
  const Json item = {
      {"type", "object"},
      {"properties",
       {{"type", {{"type", "string"}, {"enum", {"message", "reasoning", "function_call"}}}},
        {"id", typed("string")},
        {"status", typed("string")}}},
      {"required", {"type", "id", "status"}}};
  return {{"type", "object"},
          {"properties",
           {{"id", typed("string")},
            {"object", typed("string")},
            {"created_at", typed("integer")},
            {"status", {{"type", "string"}, {"enum", {"completed", "incomplete"}}}},
            {"model", typed("string")},
            {"output", {{"type", "array"}, {"items", item}}},
            {"usage", typed("object")}}},
          {"required", {"id", "object", "created_at", "status", "model", "output", "usage"}}};
}

}  // namespace octavo::api
