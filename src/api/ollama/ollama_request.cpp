#include "api/ollama/ollama_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "api/ollama/keep_alive.h"
#include "api/ollama/ollama_messages.h"
#include "api/ollama/ollama_options.h"
#include "api/openai/completion_request.h"

namespace octavo::api {
namespace {

using Fields = FieldTable<OllamaRequest>;

bool asks_no_text(const Json& value) { return value == "" || asks_nothing(value); }

void read_ollama_format(const Json& value, OllamaRequest& request) {
  if (value == "") return;
  if (value == "json") {
    request.chat["response_format"] = {{"type", "json_object"}};
  } else if (value.is_object()) {
    request.chat["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "answer"}, {"schema", value}, {"strict", true}}}};
  } else {
    refuse("format", "must be \"json\" or a JSON schema, not " + shown(value));
  }
}

void read_think(const Json& value, OllamaRequest& request) {
  const auto levels = {"low", "medium", "high", "max"};
  const bool is_level =
      std::ranges::any_of(levels, [&](const char* level) { return value == level; });
  if (!value.is_boolean() && !is_level)
    refuse("think", "must be true, false, low, medium, high or max, not " + shown(value));
  request.think = value;
}

// What happens instead is never silent: a prompt that does not fit is refused, and an output that
// does not fit ends by length.
void read_unshortened(const Json& value, const char* name, OllamaRequest& request) {
  if (to_bool(value, name)) request.ignored.emplace_back(name);
}

Fields shared_fields() {
  const Json level = {{"type", "string"}, {"enum", {"low", "medium", "high", "max"}}};
  const Json format = {
      {"anyOf", {{{"type", "string"}, {"enum", {"json", ""}}}, {{"type", "object"}}}}};
  return {
      used<OllamaRequest>(
          "model", string_schema(kMaxNameBytes), "A model listed by /api/tags",
          [](const Json& v, OllamaRequest& t) { t.model = to_string(v, "model", kMaxNameBytes); }),
      used<OllamaRequest>("options", schema_of(ollama_options()), "Sampling and limits",
                          read_ollama_options),
      used<OllamaRequest>(
          "stream", boolean_schema(), "Stream the output as lines of JSON. On by default",
          [](const Json& v, OllamaRequest& t) { t.chat["stream"] = to_bool(v, "stream"); }),
      used<OllamaRequest>("format", format,
                          "Constrain the output to a JSON object, or to a JSON schema",
                          read_ollama_format),
      used<OllamaRequest>(
          "think", {{"anyOf", {boolean_schema(), level}}},
          "Whether the model reasons before it answers; a level is passed to the chat template. "
          "Default: the server's",
          read_think),
      used<OllamaRequest>("keep_alive", keep_alive_schema(),
                          "How long the model stays loaded. A server of one model never unloads it",
                          [](const Json& v, OllamaRequest& t) {
                            t.unloads = read_keep_alive(v).count() == 0;
                            t.ignored.emplace_back("keep_alive");
                          }),
      used<OllamaRequest>(
          "truncate", boolean_schema(),
          "Prompts are never shortened: true has no effect, and a longer prompt is refused",
          [](const Json& v, OllamaRequest& t) { read_unshortened(v, "truncate", t); }),
      used<OllamaRequest>(
          "shift", boolean_schema(),
          "The context is never shifted: true has no effect, and the output ends when it is full",
          [](const Json& v, OllamaRequest& t) { read_unshortened(v, "shift", t); }),
      refused<OllamaRequest>("_debug_render_only", "is not supported", asks_false),
  };
}

Fields with_shared_fields(Fields own) {
  for (const auto& part :
       {shared_fields(),
        passed_on<OllamaRequest>({"logprobs", "top_logprobs", "ignore_eos", "min_tokens",
                                  "priority", "request_id", "cache_salt", "resumable",
                                  "resume_token_ids", "resume"})})
    own.insert(own.end(), part.begin(), part.end());
  return own;
}

template <typename Read>
Field<OllamaRequest> text_field(const char* name, const char* about, Read read) {
  return used<OllamaRequest>(name, string_schema(kMaxTextBytes), about,
                             [name, read](const Json& v, OllamaRequest& t) {
                               read(t) = to_string(v, name, kMaxTextBytes);
                             });
}

OllamaRequest read_ollama(const Json& body, const Fields& table, const ServedModel& model) {
  OllamaRequest request;
  request.chat["stream"] = true;
  IgnoredFields ignored = read_fields(body, table, request);
  request.ignored.insert(request.ignored.end(), ignored.begin(), ignored.end());
  check_model_name(request.model, model);
  if (!request.model.empty()) request.chat["model"] = request.model;
  if (request.chat.value("top_logprobs", Json()) == 0 &&
      request.chat.value("logprobs", Json()) != true)
    request.chat.erase("top_logprobs");
  settle_ollama_options(request, model);
  return request;
}

// Before the job is prepared.
void settle_think(OllamaRequest& request, const ServedModel& model) {
  if (request.think.is_null()) return;
  const Dialect& dialect = model.dialect.dialect;
  const bool on = request.think != false;
  if (on && dialect.reasoning == nullptr && dialect.channels == nullptr)
    refuse("think", "this model does not reason; omit this field");
  if (on && request.raw) refuse("think", "cannot be combined with raw, which uses no template");
  // Some templates name the variable "thinking".
  request.chat["chat_template_kwargs"] = {{"enable_thinking", on}, {"thinking", on}};
  if (!request.think.is_string()) return;
  // gpt-oss knows no level above high.
  const bool high = request.think == "max" && dialect.channels != nullptr;
  request.chat["reasoning_effort"] = high ? Json("high") : request.think;
}

OllamaJob loading_job(const OllamaRequest& request, const ServedModel& model) {
  OllamaJob job;
  job.ignored = request.ignored;
  job.model = request.model.empty() ? model.name() : request.model;
  job.loads = request.unloads ? "unload" : "load";
  return job;
}

OllamaJob finished_job(GenerationJob prepared, const OllamaRequest& request,
                       const ServedModel& model) {
  OllamaJob job{std::move(prepared)};
  job.model = request.model.empty() ? model.name() : request.model;
  if (request.num_ctx) {
    const auto prompt = static_cast<int>(job.prompts.front().tokens.size());
    job.engine.max_tokens = std::min(job.engine.max_tokens, *request.num_ctx - prompt);
  }
  return job;
}

std::vector<FieldName> names_with(std::initializer_list<FieldName> own) {
  std::vector<FieldName> names = ollama_option_names();
  names.insert(names.end(), own);
  names.insert(names.end(), {{"response_format", "format"},
                             {"reasoning_effort", "think"},
                             {"chat_template_kwargs", "think"}});
  return names;
}

OllamaJob prepare_as_chat(const OllamaRequest& request, const std::vector<FieldName>& names,
                          const ServedModel& model, const Preparation& preparation) {
  return finished_job(
      prepare_translated(request, {}, names, with_context(model, request.num_ctx), preparation),
      request, model);
}

// The prompt as it is, without the chat template.
OllamaJob prepare_raw(const OllamaRequest& request, const ServedModel& model,
                      const Preparation& preparation) {
  if (!request.system.empty())
    refuse("system", request.raw ? "cannot be combined with raw"
                                 : "this model has no chat template; write it into the prompt");
  if (!asks_nothing(request.prompt_images))
    refuse("images", request.raw ? "cannot be combined with raw, which uses no template"
                                 : "this model has no chat template to show them");
  Json body = request.chat;
  body["prompt"] = request.prompt;
  if (!body.contains("max_tokens")) body["max_tokens"] = model.max_model_len;
  const bool logprobs = body.contains("logprobs") && to_bool(body["logprobs"], "logprobs");
  const Json top = body.value("top_logprobs", Json());
  if (!logprobs && !top.is_null()) refuse("top_logprobs", "requires logprobs to be true");
  for (const char* chat_only :
       {"logprobs", "top_logprobs", "chat_template_kwargs", "reasoning_effort"})
    body.erase(chat_only);
  if (logprobs) body["logprobs"] = top.is_null() ? 0 : to_int(top, "top_logprobs", 0, kMaxLogprobs);
  try {
    GenerationJob job = prepare_completion(body, with_context(model, request.num_ctx), preparation);
    job.ignored.insert(job.ignored.begin(), request.ignored.begin(), request.ignored.end());
    return finished_job(std::move(job), request, model);
  } catch (const RequestError& error) {
    rethrow_named(error, names_with({}));
  }
}

}  // namespace

const FieldTable<OllamaRequest>& ollama_chat_fields() {
  static const Fields table = [] {
    Fields own = {used<OllamaRequest>(
        "messages", ollama_messages_schema(),
        "The conversation so far, oldest first; a final assistant message is continued. Empty or "
        "missing: only checks that the model is loaded",
        [](const Json& v, OllamaRequest& t) {
          if (!v.is_array()) refuse("messages", "must be a list");
          t.messages = v;
        })};
    const Fields tools = passed_on<OllamaRequest>({"tools", "tool_choice", "parallel_tool_calls"});
    own.insert(own.end(), tools.begin(), tools.end());
    return with_shared_fields(std::move(own));
  }();
  return table;
}

const FieldTable<OllamaRequest>& ollama_generate_fields() {
  using Request = OllamaRequest;
  const char* const no_drawing = "images are not generated";
  static const Fields table = with_shared_fields({
      text_field("prompt",
                 "The user's message, for the chat template. Empty or missing: only checks that "
                 "the model is loaded",
                 [](Request& t) -> std::string& { return t.prompt; }),
      text_field("system", "System prompt", [](Request& t) -> std::string& { return t.system; }),
      used<Request>("raw", boolean_schema(),
                    "Take the prompt as it is, without the chat template; so are prompts of models "
                    "without one",
                    [](const Json& v, Request& t) { t.raw = to_bool(v, "raw"); }),
      refused<Request>("suffix", "fill-in-the-middle is not supported", asks_no_text),
      refused<Request>("template",
                       "templates in requests are not trusted; the model's own template is used",
                       asks_no_text),
      refused<Request>("context", "is not supported; send the conversation to /api/chat"),
      used<Request>("images", ollama_images_schema(),
                    "Images of the prompt, which are shown before it: files in base64",
                    [](const Json& v, Request& t) { t.prompt_images = v; }),
      refused<Request>("width", no_drawing),
      refused<Request>("height", no_drawing),
      refused<Request>("steps", no_drawing),
  });
  return table;
}

OllamaJob prepare_ollama_chat(const Json& body, const ServedModel& model,
                              const Preparation& preparation) {
  OllamaRequest request = read_ollama(body, ollama_chat_fields(), model);
  if (request.messages.empty()) return loading_job(request, model);
  settle_think(request, model);
  read_ollama_messages(request.messages, request);
  static const std::vector<FieldName> names = names_with({});
  return prepare_as_chat(request, names, model, preparation);
}

OllamaJob prepare_ollama_generate(const Json& body, const ServedModel& model,
                                  const Preparation& preparation) {
  OllamaRequest request = read_ollama(body, ollama_generate_fields(), model);
  if (request.prompt.empty()) return loading_job(request, model);
  settle_think(request, model);
  if (request.raw || model.text.chat_template == nullptr)
    return prepare_raw(request, model, preparation);
  Json& messages = request.chat["messages"] = Json::array();
  if (!request.system.empty())
    messages.push_back({{"role", "system"}, {"content", request.system}});
  messages.push_back(
      {{"role", "user"},
       {"content", ollama_content(request.prompt_images, "images", request.prompt, request)}});
  static const std::vector<FieldName> names = names_with({{"messages", "prompt"}});
  return prepare_as_chat(request, names, model, preparation);
}

}  // namespace octavo::api
