#include "api/openai/chat_format.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/openai/logprob_json.h"

namespace octavo::api {
namespace {

bool is_call(const OutputPart& part) { return part.kind == PartKind::kToolCall; }

// The members of a delta.
std::string delta_of(const OutputPart& part) {
  std::string delta;
  switch (part.kind) {
    case PartKind::kContent:
      delta = "\"content\":";
      append_json_string(delta, part.text);
      break;
    case PartKind::kReasoning:
      delta = "\"reasoning\":";
      append_json_string(delta, part.text);
      break;
    case PartKind::kToolCall:
      delta = fmt::format(
          R"("tool_calls":[{{"index":{},"id":{},"type":"function","function":{{"name":{},"arguments":""}}}}])",
          part.call, json_string(part.id), json_string(part.name));
      break;
    case PartKind::kToolArguments:
      delta = fmt::format(R"("tool_calls":[{{"index":{},"function":{{"arguments":{}}}}}])",
                          part.call, json_string(part.text));
      break;
  }
  return delta;
}

Json message_of(const std::vector<OutputPart>& parts) {
  std::string content;
  std::string reasoning;
  Json calls = Json::array();
  for (const OutputPart& part : parts) {
    if (part.kind == PartKind::kContent) content += part.text;
    if (part.kind == PartKind::kReasoning) reasoning += part.text;
    if (part.kind == PartKind::kToolCall)
      calls.push_back({{"id", part.id},
                       {"type", "function"},
                       {"function", {{"name", part.name}, {"arguments", ""}}}});
    if (part.kind == PartKind::kToolArguments)
      calls.back()["function"]["arguments"].get_ref<std::string&>() += part.text;
  }
  Json message = {{"role", "assistant"}, {"content", content}, {"refusal", nullptr}};
  if (content.empty() && !calls.empty()) message["content"] = nullptr;
  if (!reasoning.empty()) message["reasoning"] = reasoning;
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  return message;
}

}  // namespace

ChatFormat::ChatFormat(const ServedModel& model, const GenerationJob& job)
    : model_(model),
      job_(job),
      envelope_(model, job, "chatcmpl-" + job.id,
                job.stream ? "chat.completion.chunk" : "chat.completion"),
      begun_(static_cast<size_t>(job.engine.n)),
      called_(static_cast<size_t>(job.engine.n)) {}

Json ChatFormat::finish_of(const OutputEvent& event, bool called) const {
  if (event.finish == FinishReason::kStop && called) return "tool_calls";
  return finish_reason_of(event);
}

// One choice of a chunk, written by hand because it runs for every token. The last part carries the
// event's other fields.
void ChatFormat::append_choice(std::string& out, const OutputEvent& event, std::string_view delta,
                               bool last) const {
  out += fmt::format(R"({{"index":{},"delta":{{{}}},"logprobs":)", event.index, delta);
  out += event.logprobs.empty() || !last
             ? "null"
             : dump(chat_logprobs(*model_.text.tokenizer, event.logprobs));
  if (last) {
    const bool called = called_[static_cast<size_t>(event.index)];
    out += fmt::format(R"(,"finish_reason":{},"stop_reason":{})", dump(finish_of(event, called)),
                       dump(stop_reason_of(event)));
    if (job_.reports_tokens()) out += ",\"token_ids\":" + dump(Json(event.tokens));
  } else {
    out += R"(,"finish_reason":null)";
  }
  out += '}';
}

void ChatFormat::append_event(std::string& out, const OutputEvent& event, const Usage& usage) {
  if (event.tokens.empty() && !event.finish) return;
  const auto index = static_cast<size_t>(event.index);
  std::string choice;
  if (!begun_[index]) {
    begun_[index] = true;
    choice = fmt::format(
        R"({{"index":{},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null)",
        event.index);
    if (job_.return_token_ids)
      choice += ",\"prompt_token_ids\":" + dump(Json(job_.prompts[0].tokens));
    choice += '}';
    envelope_.append_chunk(out, choice, usage);
  }
  for (const OutputPart& part : event.parts) called_[index] = called_[index] || is_call(part);
  if (event.parts.empty() && !event.finish && event.logprobs.empty() && !job_.reports_tokens())
    return;
  for (size_t i = 0; i < std::max<size_t>(event.parts.size(), 1); ++i) {
    const std::string delta = event.parts.empty() ? R"("content":"")" : delta_of(event.parts[i]);
    choice.clear();
    append_choice(choice, event, delta, i + 1 >= event.parts.size());
    envelope_.append_chunk(out, choice, usage);
  }
}

void ChatFormat::append_end(std::string& out, const Usage& usage) {
  if (job_.include_usage) envelope_.append_usage(out, usage);
  out += kSseDone;
}

void ChatFormat::append_error(std::string& out, const RequestError& error) {
  append_sse_error(out, error);
}

Json ChatFormat::choice_of(const OutputEvent& answer) const {
  Json choice = {{"index", answer.index}, {"message", message_of(answer.parts)}};
  choice["logprobs"] = job_.engine.sampling.logprobs < 0
                           ? Json()
                           : chat_logprobs(*model_.text.tokenizer, answer.logprobs);
  choice["finish_reason"] = finish_of(answer, std::ranges::any_of(answer.parts, is_call));
  choice["stop_reason"] = stop_reason_of(answer);
  if (job_.reports_tokens()) choice["token_ids"] = answer.tokens;
  return choice;
}

std::string ChatFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  Json choices = Json::array();
  for (const OutputEvent& answer : answers) choices.push_back(choice_of(answer));
  Json whole = envelope_.whole(std::move(choices), usage);
  if (job_.wants_prompt_logprobs)
    whole["prompt_logprobs"] =
        prompt_logprobs_json(*model_.text.tokenizer, answers.front().prompt_logprobs);
  if (job_.return_token_ids) whole["prompt_token_ids"] = job_.prompts.front().tokens;
  return dump(whole);
}

}  // namespace octavo::api
