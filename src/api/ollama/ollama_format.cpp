#include "api/ollama/ollama_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/api_error.h"
#include "api/fields/operation.h"
#include "api/ollama/rfc3339.h"
#include "api/openai/logprob_json.h"
#include "api/resume.h"

namespace octavo::api {
namespace {

using Clock = std::chrono::steady_clock;

bool is_object(const std::string& json) {
  const size_t first = json.find_first_not_of(" \t\r\n");
  return first != std::string::npos && json[first] == '{' && Json::accept(json);
}

// The JSON on one line. In valid JSON a line break is never part of a string.
std::string on_one_line(std::string json) {
  std::ranges::replace_if(json, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return json;
}

// Clients divide a stream at every line break that Unicode knows, not only at '\n'. In JSON these
// characters can only be part of a string, where an escape has the same meaning.
void append_line(std::string& out, std::string_view line) {
  for (size_t i = 0; i < line.size(); ++i) {
    const std::string_view rest = line.substr(i);
    if (rest.starts_with("\xc2\x85")) {
      out += "\\u0085";
      i += 1;
    } else if (rest.starts_with("\xe2\x80\xa8") || rest.starts_with("\xe2\x80\xa9")) {
      out += rest[2] == '\xa8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += line[i];
    }
  }
  out += '\n';
}

Json logprobs_of(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& tokens) {
  Json list = std::move(chat_logprobs(tokenizer, tokens)["content"]);
  for (Json& token : list) {
    if (token["top_logprobs"].empty()) token.erase("top_logprobs");
  }
  return list;
}

const char* done_reason_of(const OutputEvent& event) {
  return event.finish == FinishReason::kLength ? "length" : "stop";
}

// At least 1: clients divide by it.
int64_t nanoseconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::max<int64_t>(std::chrono::nanoseconds(end - begin).count(), 1);
}

}  // namespace

OllamaFormat::OllamaFormat(OllamaKind kind, const ServedModel& model, const OllamaJob& job,
                           Clock::time_point arrival)
    : kind_(kind),
      model_(model),
      job_(job),
      arrival_(arrival),
      head_(fmt::format(R"({{"model":{},"created_at":")", json_string(job.model))),
      says_resume_(job.resumable) {}

// A call that num_predict cut off, or whose arguments are not an object, must not look like one that
// can be run, so it is text.
void OllamaFormat::end_call(std::vector<Piece>& pieces) {
  if (call_.index < 0) return;
  const Call call = std::exchange(call_, {});
  if (!is_object(call.arguments)) {
    pieces.push_back({.content = fmt::format(R"({{"name": {}, "arguments": {})",
                                             json_string(call.name), call.arguments)});
    return;
  }
  pieces.push_back(
      {.calls = fmt::format(R"({{"id":{},"function":{{"index":{},"name":{},"arguments":{}}}}})",
                            json_string(call.id), call.index, json_string(call.name),
                            on_one_line(call.arguments))});
}

void OllamaFormat::take_part(std::vector<Piece>& pieces, const OutputPart& part) {
  if (part.kind == PartKind::kToolArguments) {
    call_.arguments += part.text;
    return;
  }
  end_call(pieces);
  if (part.kind == PartKind::kToolCall) {
    call_ = {.index = part.call, .id = part.id, .name = part.name};
  } else if (part.kind == PartKind::kReasoning) {
    pieces.push_back({.thinking = part.text});
  } else {
    pieces.push_back({.content = part.text});
  }
}

std::vector<OllamaFormat::Piece> OllamaFormat::pieces_of(const OutputEvent& event) {
  std::vector<Piece> pieces;
  if (job_.text.chat == nullptr) {
    if (!event.text.empty()) pieces.push_back({.content = event.text});
  } else {
    for (const OutputPart& part : event.parts) take_part(pieces, part);
    if (event.finish) end_call(pieces);
  }
  return pieces;
}

// Written by hand because it runs for every token.
std::string OllamaFormat::begin_line(const Piece& piece) const {
  std::string line = head_ + rfc3339(std::chrono::system_clock::now());
  line += kind_ == OllamaKind::kChat ? R"(","message":{"role":"assistant","content":)"
                                     : R"(","response":)";
  append_json_string(line, piece.content);
  if (!piece.thinking.empty()) {
    line += ",\"thinking\":";
    append_json_string(line, piece.thinking);
  }
  if (!piece.calls.empty()) line += fmt::format(",\"tool_calls\":[{}]", piece.calls);
  if (kind_ == OllamaKind::kChat) line += '}';
  return line;
}

void OllamaFormat::append_waiting(std::string& out, const Usage& usage) {
  if (!logprobs_.empty())
    out +=
        ",\"logprobs\":" + dump(logprobs_of(*model_.text.tokenizer, std::exchange(logprobs_, {})));
  if (!tokens_.empty()) out += ",\"token_ids\":" + dump(Json(std::exchange(tokens_, {})));
  if (std::exchange(says_resume_, false))
    out += ",\"resume\":" + dump(resume_json(job_, model_, usage));
}

std::string OllamaFormat::metrics(const Usage& usage) const {
  const auto now = Clock::now();
  const bool began = usage.first_token != Clock::time_point();
  const auto first = began ? usage.first_token : now;
  const auto scheduled = usage.scheduled != Clock::time_point() ? usage.scheduled : arrival_;
  return fmt::format(
      R"(,"total_duration":{},"load_duration":0,"prompt_eval_count":{},"prompt_eval_duration":{},)"
      R"("eval_count":{},"eval_duration":{})",
      nanoseconds_between(arrival_, now), usage.prompt_tokens,
      nanoseconds_between(scheduled, first), usage.completion_tokens,
      nanoseconds_between(first, now));
}

void OllamaFormat::append_event(std::string& out, const OutputEvent& event, const Usage& usage) {
  logprobs_.insert(logprobs_.end(), event.logprobs.begin(), event.logprobs.end());
  if (job_.resumable) tokens_.insert(tokens_.end(), event.tokens.begin(), event.tokens.end());
  const std::vector<Piece> pieces = pieces_of(event);
  for (const Piece& piece : pieces) {
    std::string line = begin_line(piece) + ",\"done\":false";
    if (&piece == &pieces.back()) append_waiting(line, usage);
    append_line(out, line + "}");
  }
  if (event.finish) done_reason_ = done_reason_of(event);
}

void OllamaFormat::append_end(std::string& out, const Usage& usage) {
  std::string line =
      begin_line({}) + fmt::format(R"(,"done":true,"done_reason":"{}")", done_reason_);
  line += metrics(usage);
  append_waiting(line, usage);
  append_line(out, line + "}");
}

void OllamaFormat::append_error(std::string& out, const RequestError& error) {
  append_line(out, ollama_error_body(error.what()));
}

void OllamaFormat::append_keep_alive(std::string& out) const {
  append_line(out, begin_line({}) + ",\"done\":false}");
}

std::string OllamaFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  const OutputEvent& answer = answers.front();
  Piece all;
  for (Piece& piece : pieces_of(answer)) {
    all.content += piece.content;
    all.thinking += piece.thinking;
    if (!all.calls.empty() && !piece.calls.empty()) all.calls += ',';
    all.calls += piece.calls;
  }
  logprobs_ = answer.logprobs;
  if (job_.resumable) tokens_ = answer.tokens;
  std::string out = begin_line(all);
  out += fmt::format(R"(,"done":true,"done_reason":"{}")", done_reason_of(answer));
  out += metrics(usage);
  append_waiting(out, usage);
  return out + "}";
}

std::string OllamaFormat::loaded() const {
  return begin_line({}) + fmt::format(R"(,"done":true,"done_reason":"{}"}})", job_.loads);
}

Json ollama_answer_schema(OllamaKind kind) {
  const auto typed = [](const char* type) -> Json { return {{"type", type}}; };
  const bool chat = kind == OllamaKind::kChat;
  const Json calls = {{"type", "array"}, {"items", typed("object")}};
  const Json message = {{"type", "object"},
                        {"properties",
                         {{"role", typed("string")},
                          {"content", typed("string")},
                          {"thinking", typed("string")},
                          {"tool_calls", calls}}},
                        {"required", {"role", "content"}}};
  Json properties = {
      {"model", typed("string")},
      {"created_at", {{"type", "string"}, {"format", "date-time"}}},
      {"done", typed("boolean")},
      {"done_reason", {{"type", "string"}, {"enum", {"stop", "length", "load", "unload"}}}},
      {"logprobs", {{"type", "array"}, {"items", typed("object")}}}};
  for (const char* count : {"total_duration", "load_duration", "prompt_eval_count",
                            "prompt_eval_duration", "eval_count", "eval_duration"})
    properties[count] = typed("integer");
  if (chat) {
    properties["message"] = message;
  } else {
    properties["response"] = typed("string");
    properties["thinking"] = typed("string");
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", {"model", "created_at", chat ? "message" : "response", "done"}}};
}

Json ollama_operation(const char* summary, Json body_schema, Json answer_schema) {
  Json doc = json_operation(summary, std::move(body_schema), std::move(answer_schema));
  doc["responses"]["200"]["content"]["application/x-ndjson"] = {{"schema", {{"type", "string"}}}};
  return doc;
}

}  // namespace octavo::api
