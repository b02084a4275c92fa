#include "api/openai/responses_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/openai/responses_input.h"
#include "base/error.h"

namespace octavo::server {
namespace {

using Call = ResponsesCall;

constexpr size_t kMaxTextBytes = 8u << 20;
constexpr size_t kMaxTurns = 4096;  // that a conversation goes back

const std::vector<FieldName>& field_names() {
  static const std::vector<FieldName> names = {{"messages", "input"},
                                               {"max_completion_tokens", "max_output_tokens"},
                                               {"response_format", "text.format"},
                                               {"verbosity", "text.verbosity"},
                                               {"reasoning_effort", "reasoning.effort"},
                                               {"truncate_prompt_tokens", "truncation"}};
  return names;
}

void read_format(const Json& value, Call& call) {
  const Json type = value.is_object() ? value.value("type", Json()) : Json();
  if (type == "text" || type == "json_object") {
    call.chat["response_format"] = {{"type", type}};
  } else if (type == "json_schema") {
    Json schema = value;
    schema.erase("type");
    call.chat["response_format"] = {{"type", "json_schema"}, {"json_schema", std::move(schema)}};
  } else {
    refuse("text.format", "must be an object of type text, json_object or json_schema");
  }
}

void read_text(const Json& value, Call& call) {
  if (!value.is_object()) refuse("text", "must be an object");
  for (const auto& [name, option] : value.items()) {
    if (option.is_null()) continue;
    if (name == "format") {
      read_format(option, call);
    } else if (name == "verbosity") {
      call.chat["verbosity"] = option;
    } else {
      refuse("text." + name, "is not an option octavo knows");
    }
  }
  call.echo["text"] = value;
  if (value.value("format", Json()).is_null()) call.echo["text"]["format"] = {{"type", "text"}};
}

void read_reasoning(const Json& value, Call& call) {
  if (!value.is_object()) refuse("reasoning", "must be an object");
  for (const auto& [name, option] : value.items()) {
    if (option.is_null()) continue;
    if (name == "effort") {
      const std::string effort = to_string(option, "reasoning.effort", 32);
      call.chat["reasoning_effort"] = effort;
      call.echo["reasoning"]["effort"] = effort;
      if (effort == "none") call.chat["chat_template_kwargs"]["enable_thinking"] = false;
    } else if (name == "summary" || name == "generate_summary" || name == "context" ||
               name == "mode") {
      call.ignore("reasoning", name);  // the reasoning itself is sent
    } else {
      refuse("reasoning." + name, "is not an option octavo knows");
    }
  }
}

void read_include(const Json& value, Call& call) {
  if (!value.is_array()) refuse("include", "must be a list of strings");
  for (const Json& item : value) {
    const std::string name = to_string(item, "include", kMaxNameBytes);
    if (name == "reasoning.encrypted_content") {
      call.encrypted_reasoning = true;
    } else if (name == "message.output_text.logprobs") {
      refuse("include", "has message.output_text.logprobs; /v1/chat/completions has logprobs");
    } else {
      call.ignore("include", "");  // of tools there are none
    }
  }
}

void read_metadata(const Json& value, Call& call) {
  const auto fits = [](const Json& text, size_t most) {
    return text.is_string() && text.get_ref<const std::string&>().size() <= most;
  };
  bool fine = value.is_object() && value.size() <= 16;
  if (fine)
    for (const auto& [name, text] : value.items()) fine &= name.size() <= 64 && fits(text, 512);
  if (!fine)
    refuse("metadata", "must be an object of at most 16 strings of at most 512 bytes each");
  call.echo["metadata"] = value;
}

void read_truncation(const Json& value, Call& call) {
  if (value != "auto" && value != "disabled") refuse("truncation", "must be auto or disabled");
  if (value == "auto") call.chat["truncate_prompt_tokens"] = -1;
  call.echo["truncation"] = value;
}

void read_stream_options(const Json& value, Call&) {
  if (!value.is_object()) refuse("stream_options", "must be an object");
  for (const auto& [name, option] : value.items()) {
    if (name != "include_obfuscation")
      refuse("stream_options." + name, "is not an option octavo knows");
    if (!option.is_null()) to_bool(option, "stream_options.include_obfuscation");
  }
}

FieldTable<Call> conversation_fields() {
  return {
      {.name = "input",
       .use = FieldUse::kUsed,
       .schema = input_schema(),
       .about = "A text, or the conversation's items: messages, reasoning, function calls and "
                "their outputs",
       .read = [](const Json& v, Call& c) { c.input = items_of(v); },
       .required = true},
      used<Call>("instructions", string_schema(kMaxTextBytes), "What the model is told first",
                 [](const Json& v, Call& c) {
                   c.instructions = to_string(v, "instructions", kMaxTextBytes);
                 }),
      used<Call>("previous_response_id", filled_string_schema(kMaxNameBytes),
                 "The conversation goes on from this stored response",
                 [](const Json& v, Call& c) {
                   c.previous = to_string(v, "previous_response_id", kMaxNameBytes);
                   if (c.previous.empty()) refuse("previous_response_id", "is empty");
                 }),
      used<Call>("store", boolean_schema(),
                 "Keep the response for previous_response_id, for a while; on unless told "
                 "otherwise",
                 [](const Json& v, Call& c) { c.store = to_bool(v, "store"); }),
      used<Call>("tools", {{"type", "array"}, {"items", {{"type", "object"}}}},
                 "Functions of the client; tools of other types are accepted and ignored",
                 [](const Json& v, Call& c) { c.tools = v; }),
      used<Call>(
          "tool_choice",
          {{"anyOf",
            {{{"type", "string"}, {"enum", {"auto", "none", "required"}}}, {{"type", "object"}}}}},
          "Whether and which tools are called", [](const Json& v, Call& c) { c.tool_choice = v; }),
      used<Call>("parallel_tool_calls", boolean_schema(), "More than one call in an answer",
                 [](const Json& v, Call& c) {
                   c.chat["parallel_tool_calls"] = to_bool(v, "parallel_tool_calls");
                   c.echo["parallel_tool_calls"] = v;
                 }),
  };
}

FieldTable<Call> answer_fields() {
  return {
      used<Call>("max_output_tokens", integer_schema(1, kMaxInt),
                 "The longest answer in tokens, reasoning included",
                 [](const Json& v, Call& c) {
                   c.chat["max_completion_tokens"] = to_int(v, "max_output_tokens", 1, kMaxInt);
                   c.echo["max_output_tokens"] = v;
                 }),
      used<Call>("text", {{"type", "object"}},
                 "format: text, json_object or a json_schema the answer keeps to", read_text),
      used<Call>("reasoning", {{"type", "object"}}, "effort: handed to the template",
                 read_reasoning),
      used<Call>("include", {{"type", "array"}, {"items", string_schema(kMaxNameBytes)}},
                 "reasoning.encrypted_content: reasoning that can be sent back", read_include),
      used<Call>("metadata", {{"type", "object"}, {"additionalProperties", string_schema(512)}},
                 "Repeated in the answer", read_metadata),
      used<Call>("truncation", {{"type", "string"}, {"enum", {"auto", "disabled"}}},
                 "auto: a prompt longer than the context loses its beginning", read_truncation),
      used<Call>("stream_options", {{"type", "object"}}, "include_obfuscation has no effect",
                 read_stream_options),
  };
}

FieldTable<Call> refused_responses_fields() {
  return {
      refused<Call>("background", "is not supported; send stream: true", asks_false),
      refused<Call>("conversation", "is not supported; use previous_response_id or send all items"),
      refused<Call>("prompt", "there are no stored prompts; send input"),
      refused<Call>("moderation", "is not supported"),
      refused<Call>("top_logprobs", "is not supported; /v1/chat/completions has logprobs",
                    [](const Json& v) { return v == 0; }),
  };
}

Json earlier_items(const std::string& previous, const ResponseShelf& shelf) {
  std::vector<std::shared_ptr<const StoredResponse>> turns;  // the latest first
  size_t bytes = 0;
  for (std::string id = previous; !id.empty(); id = turns.back()->previous) {
    turns.push_back(shelf.get(id, "previous_response_id"));
    bytes += turns.back()->object.size() + turns.back()->input.size();
    if (turns.size() > kMaxTurns || bytes > kMaxTextBytes)
      refuse("previous_response_id",
             fmt::format("has {} bytes in {} responses before it, more than a conversation may "
                         "have; begin a new one",
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

Call read_call(const Json& body, IgnoredFields& ignored, const ResponseShelf& shelf) {
  Call call;
  ignored = read_fields(body, responses_fields(), call);
  if (!call.tools.is_null()) read_response_tools(call.tools, call);
  if (!call.tool_choice.is_null()) read_response_tool_choice(call.tool_choice, call);
  settle_tool_choice(call);
  const Json earlier = call.previous.empty() ? Json::array() : earlier_items(call.previous, shelf);
  call.chat["messages"] = conversation_of(call.instructions, earlier, call.input, call);
  return call;
}

// Everything a response has but its id, its output and how it ended.
Json head_of(const Call& call, const GenerationJob& job, const ServedModel& model) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  Json head = {{"id", nullptr},
               {"object", "response"},
               {"created_at", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
               {"status", "in_progress"},
               {"background", false},
               {"error", nullptr},
               {"incomplete_details", nullptr},
               {"instructions", call.instructions},
               {"max_output_tokens", nullptr},
               {"metadata", Json::object()},
               {"model", model.name()},
               {"output", Json::array()},
               {"parallel_tool_calls", true},
               {"previous_response_id", call.previous.empty() ? Json() : Json(call.previous)},
               {"reasoning", {{"effort", nullptr}, {"summary", nullptr}}},
               {"service_tier", "default"},
               {"store", call.store},
               {"temperature", job.engine.sampling.temperature},
               {"text", {{"format", {{"type", "text"}}}}},
               {"tool_choice", call.tool_choice.is_null() ? Json("auto") : call.tool_choice},
               {"tools", call.tools.is_null() ? Json::array() : call.tools},
               {"top_p", job.engine.sampling.top_p},
               {"truncation", "disabled"},
               {"usage", nullptr}};
  for (const auto& [name, value] : call.echo.items()) {
    if (name == "reasoning") {
      head[name].update(value);
    } else {
      head[name] = value;
    }
  }
  return head;
}

}  // namespace

const FieldTable<ResponsesCall>& responses_fields() {
  static const FieldTable<Call> table = [] {
    FieldTable<Call> all = conversation_fields();
    for (const auto& part :
         {answer_fields(),
          passed_on<Call>({"model", "stream", "temperature", "top_p", "top_k", "min_p", "seed",
                           "repetition_penalty", "ignore_eos", "min_tokens", "priority",
                           "request_id", "cache_salt"}),
          refused_responses_fields(),
          hints<Call>({"user", "service_tier", "safety_identifier", "prompt_cache_key",
                       "prompt_cache_retention", "prompt_cache_options", "context_management",
                       "max_tool_calls", "client_metadata", "access_programs", "image"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

std::shared_ptr<const StoredResponse> ResponseShelf::get(const std::string& id,
                                                         const std::string& field) const {
  auto found = store.find(owner, id);
  if (found == nullptr)
    throw RequestError(404, field,
                       fmt::format("there is no response {}; it was not stored, or dropped to make "
                                   "room for later ones. Send the whole conversation as input",
                                   shown(Json(id))));
  return found;
}

ResponsesJob prepare_responses(const Json& body, const ServedModel& model,
                               const ResponseShelf& shelf) {
  IgnoredFields ignored;
  Call call = read_call(body, ignored, shelf);
  ResponsesJob job{prepare_translated(call, std::move(ignored), field_names(), model)};
  job.head = head_of(call, job, model);
  job.input = std::move(call.input);
  job.previous = std::move(call.previous);
  job.store = call.store;
  job.encrypted_reasoning = call.encrypted_reasoning;
  return job;
}

Json count_response_tokens(const Json& body, const ServedModel& model, const ResponseShelf& shelf) {
  IgnoredFields ignored;
  const Call call = read_call(body, ignored, shelf);
  return {{"object", "response.input_tokens"},
          {"input_tokens", count_translated(call, field_names(), model)}};
}

}  // namespace octavo::server
