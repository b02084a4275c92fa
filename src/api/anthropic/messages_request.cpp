#include "api/anthropic/messages_request.h"

#include <utility>

#include "api/anthropic/messages_input.h"

namespace octavo::api {
namespace {

const std::vector<FieldName>& field_names() {
  static const std::vector<FieldName> names = {{"stop", "stop_sequences"},
                                               {"max_completion_tokens", "max_tokens"},
                                               {"thinking_token_budget", "thinking.budget_tokens"},
                                               {"response_format", "output_config.format"},
                                               {"reasoning_effort", "output_config.effort"}};
  return names;
}

void read_thinking(const Json& value, MessagesRequest& request) {
  if (!value.is_object()) refuse("thinking", "must be an object with a type");
  const Json type = value.value("type", Json());
  Json& options = request.chat["chat_template_kwargs"];
  if (type == "enabled") {
    options["enable_thinking"] = true;
    request.chat["thinking_token_budget"] =
        to_int(value.value("budget_tokens", Json()), "thinking.budget_tokens", 0, kMaxInt);
  } else if (type == "disabled") {
    options["enable_thinking"] = false;
  } else if (type != "adaptive" && type != "between_tools") {
    refuse("thinking.type", "must be enabled, disabled or adaptive");
  }
  if (options.is_null())
    request.chat.erase("chat_template_kwargs");  // adaptive: the model's default
  if (!value.value("display", Json()).is_null()) request.ignore("thinking", "display");
}

void read_format(const Json& value, const std::string& field, MessagesRequest& request) {
  if (!value.is_object() || value.value("type", Json()) != "json_schema")
    refuse(field, "must be an object of type json_schema");
  const Json schema = value.value("schema", Json());
  if (!schema.is_object()) refuse(field + ".schema", "must be an object");
  request.chat["response_format"] = {
      {"type", "json_schema"},
      {"json_schema", {{"name", "answer"}, {"schema", schema}, {"strict", true}}}};
}

void read_output_config(const Json& value, MessagesRequest& request) {
  if (!value.is_object()) refuse("output_config", "must be an object");
  for (const auto& [name, option] : value.items()) {
    const std::string field = "output_config." + name;
    if (option.is_null()) continue;
    if (name == "format") {
      read_format(option, field, request);
    } else if (name == "effort") {
      request.chat["reasoning_effort"] = to_string(option, field, 32);
    } else {
      refuse(field, "is not a known option");
    }
  }
}

void read_stops(const Json& value, MessagesRequest& request) {
  if (!value.is_array()) refuse("stop_sequences", "must be a list of strings");
  request.chat["stop"] = value;
}

FieldTable<MessagesRequest> own_fields() {
  return {
      {.name = "messages",
       .use = FieldUse::kUsed,
       .schema = conversation_schema(),
       .about = "The conversation so far, oldest first; a final assistant message is continued",
       .read = [](const Json& v, MessagesRequest& t) { t.messages = v; },
       .required = true},
      used<MessagesRequest>("system", system_schema(), "System prompt",
                            [](const Json& v, MessagesRequest& t) { t.system = v; }),
      used<MessagesRequest>(
          "max_tokens", integer_schema(1, kMaxInt),
          "Maximum number of output tokens; the context length is a further limit",
          [](const Json& v, MessagesRequest& t) {
            t.chat["max_completion_tokens"] = to_int(v, "max_tokens", 1, kMaxInt);
          }),
      used<MessagesRequest>("stop_sequences", filled_strings_schema(kMaxStopBytes, kMaxStops),
                            "The output ends before the first of these strings", read_stops),
      used<MessagesRequest>(
          "tools", tools_schema(),
          "Functions that the client runs; tools of other types are accepted and ignored",
          [](const Json& v, MessagesRequest& t) { read_tools(v, t); }),
      used<MessagesRequest>("tool_choice", tool_choice_schema(),
                            "Whether tools are called, and which",
                            [](const Json& v, MessagesRequest& t) { read_tool_choice(v, t); }),
      used<MessagesRequest>(
          "thinking", {{"type", "object"}},
          "enabled (with budget_tokens), disabled, or adaptive: the server's default",
          read_thinking),
      used<MessagesRequest>(
          "output_config", {{"type", "object"}},
          "format: a JSON schema that constrains the output; effort: passed to the chat template",
          read_output_config),
      used<MessagesRequest>(
          "output_format", {{"type", "object"}}, "Earlier name of output_config.format",
          [](const Json& v, MessagesRequest& t) { read_format(v, "output_format", t); }),
  };
}

FieldTable<MessagesRequest> refused_messages_fields() {
  return {
      refused<MessagesRequest>(
          "mcp_servers",
          "the server does not call tools; list them in `tools` and call them in the client"),
      refused<MessagesRequest>("compaction",
                               "is not supported; shorten the conversation in the client"),
      refused<MessagesRequest>("thread", "is not supported; send the whole conversation"),
  };
}

MessagesRequest read_request(const Json& body, IgnoredFields& ignored) {
  MessagesRequest request;
  ignored = read_fields(body, messages_fields(), request);
  Json messages = Json::array();
  if (!request.system.is_null()) read_system(request.system, request, messages);
  read_conversation(request.messages, request, messages);
  request.chat["messages"] = std::move(messages);
  settle_tool_choice(request);
  return request;
}

}  // namespace

const FieldTable<MessagesRequest>& messages_fields() {
  static const FieldTable<MessagesRequest> table = [] {
    FieldTable<MessagesRequest> all = own_fields();
    for (const auto& part :
         {passed_on<MessagesRequest>({"model", "stream", "temperature", "top_p", "top_k", "min_p",
                                      "seed", "repetition_penalty", "ignore_eos", "min_tokens",
                                      "priority", "request_id", "cache_salt", "resumable",
                                      "resume_token_ids", "resume"}),
          refused_messages_fields(),
          hints<MessagesRequest>({"keep_alive", "metadata", "service_tier", "cache_control",
                                  "context_management", "container", "inference_geo", "diagnostics",
                                  "speed", "betas", "anthropic_beta", "anthropic_version",
                                  "user_profile_id", "workspace_id", "fallbacks",
                                  "fallback_credit_token"})})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return table;
}

GenerationJob prepare_messages(const Json& body, const ServedModel& model,
                               const Preparation& preparation) {
  IgnoredFields ignored;
  const MessagesRequest request = read_request(body, ignored);
  return prepare_translated(request, std::move(ignored), field_names(), model, preparation);
}

Json count_message_tokens(const Json& body, const ServedModel& model,
                          const Preparation& preparation) {
  IgnoredFields ignored;
  const MessagesRequest request = read_request(body, ignored);
  return {{"input_tokens", count_translated(request, field_names(), model, preparation)}};
}

}  // namespace octavo::api
