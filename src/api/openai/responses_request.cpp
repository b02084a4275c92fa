#include "api/openai/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/openai/responses_input.h"
#include "base/error.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxTurns = 4096;    // per conversation
constexpr int64_t kBytesPerByte = 4;  // of memory, for JSON of short values

const std::vector<FieldName>& field_names() {
  static const std::vector<FieldName> names = {{"messages", "input"},
                                               {"max_completion_tokens", "max_output_tokens"},
                                               {"response_format", "text.format"},
                                               {"verbosity", "text.verbosity"},
                                               {"reasoning_effort", "reasoning.effort"},
                                               {"truncate_prompt_tokens", "truncation"}};
  return names;
}

void read_format(const Json& value, ResponsesRequest& request) {
  const Json type = value.is_object() ? value.value("type", Json()) : Json();
  if (type == "text" || type == "json_object") {
    request.chat["response_format"] = {{"type", type}};
  } else if (type == "json_schema") {
    Json schema = value;
    schema.erase("type");
    request.chat["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  } else {
    refuse("text.format", "must be an object of type text, json_object or json_schema");
  }
}

void read_text(const Json& value, ResponsesRequest& request) {
  if (!value.is_object()) refuse("text", "must be an object");
  for (const auto& [name, option] : value.items()) {
    if (option.is_null()) continue;
    if (name == "format") {
      read_format(option, request);
    } else if (name == "verbosity") {
      request.chat["verbosity"] = option;
    } else {
      refuse("text." + name, "is not a known option");
    }
  }
  request.echo["text"] = value;
  if (value.value("format", Json()).is_null()) request.echo["text"]["format"] = {{"type", "text"}};
}

void read_reasoning(const Json& value, ResponsesRequest& request) {
  if (!value.is_object()) refuse("reasoning", "must be an object");
  for (const auto& [name, option] : value.items()) {
    if (option.is_null()) continue;
    if (name == "effort") {
      const std::string effort = to_string(option, "reasoning.effort", 32);
      request.chat["reasoning_effort"] = effort;
      request.echo["reasoning"]["effort"] = effort;
      if (effort == "none") request.chat["chat_template_kwargs"]["enable_thinking"] = false;
    } else if (name == "summary" || name == "generate_summary" || name == "context" ||
               name == "mode") {
      request.ignore("reasoning", name);  // the reasoning itself is returned
    } else {
      refuse("reasoning." + name, "is not a known option");
    }
  }
}

void read_include(const Json& value, ResponsesRequest& request) {
  if (!value.is_array()) refuse("include", "must be a list of strings");
  for (const Json& item : value) {
    const std::string name = to_string(item, "include", kMaxNameBytes);
    if (name == "reasoning.encrypted_content") {
      request.encrypted_reasoning = true;
    } else if (name == "message.output_text.logprobs") {
      refuse(
          "include",
          "message.output_text.logprobs is not supported; use /v1/chat/completions for logprobs");
    } else {
      request.ignore("include", "");  // the others concern hosted tools
    }
  }
}

void read_metadata(const Json& value, ResponsesRequest& request) {
  const auto fits = [](const Json& text, size_t most) {
    return text.is_string() && text.get_ref<const std::string&>().size() <= most;
  };
  bool fine = value.is_object() && value.size() <= 16;
  if (fine)
    for (const auto& [name, text] : value.items()) fine &= name.size() <= 64 && fits(text, 512);
  if (!fine)
    refuse("metadata", "must be an object of at most 16 strings of at most 512 bytes each");
  request.echo["metadata"] = value;
}

void read_truncation(const Json& value, ResponsesRequest& request) {
  if (value != "auto" && value != "disabled") refuse("truncation", "must be auto or disabled");
  if (value == "auto") request.chat["truncate_prompt_tokens"] = -1;
  request.echo["truncation"] = value;
}

void read_stream_options(const Json& value, ResponsesRequest&) {
  if (!value.is_object()) refuse("stream_options", "must be an object");
  for (const auto& [name, option] : value.items()) {
    if (name != "include_obfuscation") refuse("stream_options." + name, "is not a known option");
    if (!option.is_null()) to_bool(option, "stream_options.include_obfuscation");
  }
}

FieldTable<ResponsesRequest> conversation_fields() {
  return {
      {.name = "input",
       .use = FieldUse::kUsed,
       .schema = input_schema(),
       .about = "A string, or the conversation's items: messages, reasoning, function calls and "
                "their outputs",
       .read = [](const Json& v, ResponsesRequest& t) { t.input = items_of(v); },
       .required = true},
      used<ResponsesRequest>("instructions", string_schema(kMaxTextBytes), "System prompt",
                             [](const Json& v, ResponsesRequest& t) {
                               t.instructions = to_string(v, "instructions", kMaxTextBytes);
                             }),
      used<ResponsesRequest>("previous_response_id", filled_string_schema(kMaxNameBytes),
                             "Continue the conversation from this stored response",
                             [](const Json& v, ResponsesRequest& t) {
                               t.previous.id = to_string(v, "previous_response_id", kMaxNameBytes);
                               if (t.previous.id.empty())
                                 refuse("previous_response_id", "is empty");
                             }),
      used<ResponsesRequest>(
          "store", boolean_schema(),
          "Store the response so that previous_response_id can refer to it; on by default",
          [](const Json& v, ResponsesRequest& t) { t.store = to_bool(v, "store"); }),
      used<ResponsesRequest>(
          "tools", {{"type", "array"}, {"items", {{"type", "object"}}}},
          "Functions that the client runs; tools of other types are accepted and ignored",
          [](const Json& v, ResponsesRequest& t) { t.tools = v; }),
      used<ResponsesRequest>(
          "tool_choice",
          {{"anyOf",
            {{{"type", "string"}, {"enum", {"auto", "none", "required"}}}, {{"type", "object"}}}}},
          "Whether tools are called, and which",
          [](const Json& v, ResponsesRequest& t) { t.tool_choice = v; }),
      used<ResponsesRequest>("parallel_tool_calls", boolean_schema(),
                             "Allow more than one tool call per response",
                             [](const Json& v, ResponsesRequest& t) {
                               t.chat["parallel_tool_calls"] = to_bool(v, "parallel_tool_calls");
                               t.echo["parallel_tool_calls"] = v;
                             }),
  };
}

FieldTable<ResponsesRequest> answer_fields() {
  return {
      used<ResponsesRequest>("max_output_tokens", integer_schema(1, kMaxInt),
                             "Maximum number of output tokens, including reasoning",
                             [](const Json& v, ResponsesRequest& t) {
                               t.chat["max_completion_tokens"] =
                                   to_int(v, "max_output_tokens", 1, kMaxInt);
                               t.echo["max_output_tokens"] = v;
                             }),
      used<ResponsesRequest>(
          "text", {{"type", "object"}},
          "format: text, json_object, or a json_schema that constrains the output", read_text),
      used<ResponsesRequest>("reasoning", {{"type", "object"}},
                             "effort: passed to the chat template", read_reasoning),
      used<ResponsesRequest>(
          "include", {{"type", "array"}, {"items", string_schema(kMaxNameBytes)}},
          "reasoning.encrypted_content: return reasoning in a form that can be sent back",
          read_include),
      used<ResponsesRequest>("metadata",
                             {{"type", "object"}, {"additionalProperties", string_schema(512)}},
                             "Returned unchanged in the response", read_metadata),
      used<ResponsesRequest>("truncation", {{"type", "string"}, {"enum", {"auto", "disabled"}}},
                             "auto: drop the beginning of a prompt that exceeds the context",
                             read_truncation),
      used<ResponsesRequest>("stream_options", {{"type", "object"}},
                             "include_obfuscation has no effect", read_stream_options),
  };
}

FieldTable<ResponsesRequest> refused_responses_fields() {
  return {
      refused<ResponsesRequest>("background", "is not supported; send stream: true", asks_false),
      refused<ResponsesRequest>("conversation",
                                "is not supported; use previous_response_id or send all items"),
      refused<ResponsesRequest>("prompt", "stored prompts are not supported; send input"),
      refused<ResponsesRequest>("moderation", "is not supported"),
      refused<ResponsesRequest>("top_logprobs",
                                "is not supported; use /v1/chat/completions for logprobs",
                                [](const Json& v) { return v == 0; }),
  };
}

[[noreturn]] void refuse_missing(const std::string& id, const std::string& field) {
  throw RequestError(
      404, field,
      fmt::format(
          "response {} was not stored or has been evicted; send the whole conversation as input",
          shown(Json(id))));
}

// The items of the conversation up to the response `previous.id`. Sets its serial number.
Json earlier_items(PreviousResponse& previous, const ResponseShelf& shelf) {
  std::vector<std::shared_ptr<const StoredResponse>> turns;  // latest first
  size_t bytes = 0;
  for (PreviousResponse turn = previous; !turn.id.empty(); turn = turns.back()->previous) {
    turns.push_back(shelf.get(turn.id, "previous_response_id"));
    if (turns.size() == 1) {
      previous.serial = turns.back()->serial;
    } else if (turns.back()->serial != turn.serial) {
      refuse_missing(turn.id, "previous_response_id");  // another response has its id now
    }
    bytes += turns.back()->object.size() + turns.back()->input.size();
    if (turns.size() > kMaxTurns || bytes > kMaxTextBytes)
      refuse("previous_response_id", fmt::format("has {} bytes in {} earlier responses, more than "
                                                 "the limit for one conversation; start a new one",
                                                 bytes, turns.size()));
  }
  Json items = Json::array();
  for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
    for (Json& item : Json::parse((*turn)->input)) items.push_back(std::move(item));
    Json response = Json::parse((*turn)->object);
    for (Json& item : response["output"]) items.push_back(std::move(item));
  }
  return items;
}

// A resumed answer brings its prompt, so that a server can continue it which has not stored the
// conversation.
bool needs_earlier(const ResponsesRequest& request, const ResponseShelf& shelf) {
  if (request.previous.id.empty()) return false;
  const Json resume = request.chat.value("resume", Json());
  const bool has_prompt = resume.is_object() && resume.contains("prompt_token_ids");
  return !has_prompt || shelf.store.find(shelf.owner, request.previous.id) != nullptr;
}

ResponsesRequest read_request(const Json& body, IgnoredFields& ignored,
                              const ResponseShelf& shelf) {
  ResponsesRequest request;
  ignored = read_fields(body, responses_fields(), request);
  if (!request.tools.is_null()) read_response_tools(request.tools, request);
  if (!request.tool_choice.is_null()) read_response_tool_choice(request.tool_choice, request);
  settle_tool_choice(request);
  const Json earlier =
      needs_earlier(request, shelf) ? earlier_items(request.previous, shelf) : Json::array();
  request.chat["messages"] = conversation_of(request.instructions, earlier, request.input, request);
  return request;
}

// The response object without its id, output and final status.
Json head_of(const ResponsesRequest& request, const GenerationJob& job, const ServedModel& model) {
  Json head = {
      {"id", nullptr},
      {"object", "response"},
      {"created_at", job.created},
      {"status", "in_progress"},
      {"background", false},
      {"error", nullptr},
      {"incomplete_details", nullptr},
      {"instructions", request.instructions},
      {"max_output_tokens", nullptr},
      {"metadata", Json::object()},
      {"model", model.answer_name(job.engine.adapter.get())},
      {"output", Json::array()},
      {"parallel_tool_calls", true},
      {"previous_response_id", request.previous.id.empty() ? Json() : Json(request.previous.id)},
      {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
      {"service_tier", "default"},
      {"store", request.store},
      {"temperature", job.engine.sampling.temperature},
      {"text", {{"format", {{"type", "text"}}}}},
      {"tool_choice", request.tool_choice.is_null() ? Json("auto") : request.tool_choice},
      {"tools", request.tools.is_null() ? Json::array() : request.tools},
      {"top_p", job.engine.sampling.top_p},
      {"truncation", "disabled"},
      {"usage", nullptr}};
  for (const auto& [name, value] : request.echo.items()) {
    if (name == "reasoning") {
      head[name].update(value);
    } else {
      head[name] = value;
    }
  }
  return head;
}

}  // namespace

const FieldTable<ResponsesRequest>& responses_fields() {
  static const FieldTable<ResponsesRequest> table = [] {
    FieldTable<ResponsesRequest> all = conversation_fields();
    for (const auto& part :
         {answer_fields(),
          passed_on<ResponsesRequest>({"model", "stream", "temperature", "top_p", "top_k", "min_p",
                                       "seed", "repetition_penalty", "ignore_eos", "min_tokens",
                                       "priority", "request_id", "cache_salt", "resumable",
                                       "resume_token_ids", "resume"}),
          refused_responses_fields(),
          hints<ResponsesRequest>({"keep_alive", "user", "service_tier", "safety_identifier",
                                   "prompt_cache_key", "prompt_cache_retention",
                                   "prompt_cache_options", "context_management", "max_tool_calls",
                                   "client_metadata", "access_programs", "image"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

std::shared_ptr<const StoredResponse> ResponseShelf::get(const std::string& id,
                                                         const std::string& field) const {
  auto found = store.find(owner, id);
  if (found == nullptr) refuse_missing(id, field);
  return found;
}

ResponsesJob prepare_responses(const Json& body, const ServedModel& model,
                               const ResponseShelf& shelf, const Preparation& preparation) {
  IgnoredFields ignored;
  ResponsesRequest request = read_request(body, ignored, shelf);
  ResponsesJob job{
      prepare_translated(request, std::move(ignored), field_names(), model, preparation)};
  job.head = head_of(request, job, model);
  job.head_bytes = kBytesPerByte * static_cast<int64_t>(dump(job.head).size());
  job.previous = std::move(request.previous);
  job.store = request.store;
  if (job.store) job.input = dump(request.input);
  if (job.input.size() > shelf.store.limits().response_bytes) {
    job.store = false;
    job.input.clear();
  }
  job.encrypted_reasoning = request.encrypted_reasoning;
  return job;
}

Json count_response_tokens(const Json& body, const ServedModel& model, const ResponseShelf& shelf,
                           const Preparation& preparation) {
  IgnoredFields ignored;
  const ResponsesRequest request = read_request(body, ignored, shelf);
  return {{"object", "response.input_tokens"},
          {"input_tokens", count_translated(request, field_names(), model, preparation)}};
}

}  // namespace octavo::api
