#include "api/anthropic/messages_request.h"

#include <utility>

#include "api/anthropic/messages_input.h"

namespace octavo::server {
namespace {

using Call = MessagesCall;

const std::vector<FieldName>& field_names() {
  static const std::vector<FieldName> names = {{"stop", "stop_sequences"},
                                               {"max_completion_tokens", "max_tokens"},
                                               {"thinking_token_budget", "thinking.budget_tokens"},
                                               {"response_format", "output_config.format"},
                                               {"reasoning_effort", "output_config.effort"}};
  return names;
}

void read_thinking(const Json& value, Call& call) {
  if (!value.is_object()) refuse("thinking", "must be an object with a type");
  const Json type = value.value("type", Json());
  Json& options = call.chat["chat_template_kwargs"];
  if (type == "enabled") {
    options["enable_thinking"] = true;
    call.chat["thinking_token_budget"] =
        to_int(value.value("budget_tokens", Json()), "thinking.budget_tokens", 0, kMaxInt);
  } else if (type == "disabled") {
    options["enable_thinking"] = false;
  } else if (type != "adaptive" && type != "between_tools") {
    refuse("thinking.type", "must be enabled, disabled or adaptive");
  }
  if (options.is_null()) call.chat.erase("chat_template_kwargs");  // the model's own way
  if (!value.value("display", Json()).is_null()) call.ignore("thinking", "display");
}

void read_format(const Json& value, const std::string& field, Call& call) {
  if (!value.is_object() || value.value("type", Json()) != "json_schema")
    refuse(field, "must be an object of type json_schema");
  const Json schema = value.value("schema", Json());
  if (!schema.is_object()) refuse(field + ".schema", "must be an object");
  call.chat["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "answer"}, {"schema", schema}, {"strict", true}}}};
}

void read_output_config(const Json& value, Call& call) {
  if (!value.is_object()) refuse("output_config", "must be an object");
  for (const auto& [name, option] : value.items()) {
    const std::string field = "output_config." + name;
    if (option.is_null()) continue;
    if (name == "format") {
      read_format(option, field, call);
    } else if (name == "effort") {
      call.chat["reasoning_effort"] = to_string(option, field, 32);
    } else {
      refuse(field, "is not an option octavo knows");
    }
  }
}

void read_stops(const Json& value, Call& call) {
  if (!value.is_array()) refuse("stop_sequences", "must be a list of strings");
  call.chat["stop"] = value;
}

FieldTable<Call> own_fields() {
  return {
      {.name = "messages",
       .use = FieldUse::kUsed,
       .schema = conversation_schema(),
       .about = "The conversation so far, oldest first; a last message of the assistant is "
                "continued",
       .read = [](const Json& v, Call& c) { c.messages = v; },
       .required = true},
      used<Call>("system", system_schema(), "What the model is told first",
                 [](const Json& v, Call& c) { c.system = v; }),
      used<Call>("max_tokens", integer_schema(1, kMaxInt),
                 "The longest answer in tokens; it ends earlier where the context does",
                 [](const Json& v, Call& c) {
                   c.chat["max_completion_tokens"] = to_int(v, "max_tokens", 1, kMaxInt);
                 }),
      used<Call>("stop_sequences", filled_strings_schema(kMaxStopBytes, kMaxStops),
                 "The answer ends before the first of these", read_stops),
      used<Call>("tools", tools_schema(),
                 "Functions of the client; tools of other types are accepted and ignored",
                 [](const Json& v, Call& c) { read_tools(v, c); }),
      used<Call>("tool_choice", tool_choice_schema(), "Whether and which tools are called",
                 [](const Json& v, Call& c) { read_tool_choice(v, c); }),
      used<Call>("thinking", {{"type", "object"}},
                 "enabled (with budget_tokens), disabled, or adaptive: as the server is set up",
                 read_thinking),
      used<Call>("output_config", {{"type", "object"}},
                 "format: a JSON schema the answer keeps to; effort: handed to the template",
                 read_output_config),
      used<Call>("output_format", {{"type", "object"}}, "The earlier name of output_config.format",
                 [](const Json& v, Call& c) { read_format(v, "output_format", c); }),
  };
}

FieldTable<Call> refused_messages_fields() {
  return {
      refused<Call>("mcp_servers", "the server calls no tools; list the tools in `tools`"),
      refused<Call>("compaction", "is not supported; the client shortens its conversations"),
      refused<Call>("thread", "is not supported; send the whole conversation"),
  };
}

Call read_call(const Json& body, IgnoredFields& ignored) {
  Call call;
  ignored = read_fields(body, messages_fields(), call);
  Json messages = Json::array();
  if (!call.system.is_null()) read_system(call.system, call, messages);
  read_conversation(call.messages, call, messages);
  call.chat["messages"] = std::move(messages);
  settle_tool_choice(call);
  return call;
}

}  // namespace

const FieldTable<MessagesCall>& messages_fields() {
  static const FieldTable<Call> table = [] {
    FieldTable<Call> all = own_fields();
    for (const auto& part :
         {passed_on<Call>({"model", "stream", "temperature", "top_p", "top_k", "min_p", "seed",
                           "repetition_penalty", "ignore_eos", "min_tokens", "priority",
                           "request_id", "cache_salt"}),
          refused_messages_fields(),
          hints<Call>({"metadata", "service_tier", "cache_control", "context_management",
                       "container", "inference_geo", "diagnostics", "speed", "betas",
                       "anthropic_beta", "anthropic_version", "user_profile_id", "workspace_id",
                       "fallbacks", "fallback_credit_token"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

GenerationJob prepare_messages(const Json& body, const ServedModel& model) {
  IgnoredFields ignored;
  const Call call = read_call(body, ignored);
  return prepare_translated(call, std::move(ignored), field_names(), model);
}

Json count_message_tokens(const Json& body, const ServedModel& model) {
  IgnoredFields ignored;
  const Call call = read_call(body, ignored);
  return {{"input_tokens", count_translated(call, field_names(), model)}};
}

}  // namespace octavo::server
