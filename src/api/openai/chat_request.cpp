#include "api/openai/chat_request.h"

#include <algorithm>

#include "api/fields/field_kinds.h"
#include "api/images/image_placeholders.h"
#include "api/openai/chat_images.h"
#include "api/openai/chat_input.h"
#include "api/openai/chat_output.h"
#include "api/openai/chat_turns.h"
#include "api/openai/tool_prompt.h"
#include "api/resume.h"
#include "base/error.h"

namespace octavo::api {
namespace {

// Any JSON value; only the template interprets it.
void read_template_kwargs(const Json& value, ChatPromptRequest& request) {
  if (!value.is_object()) refuse("chat_template_kwargs", "must be an object");
  for (const auto& [name, option] : value.items()) request.render.extra[name] = option;
}

void read_reasoning_effort(const Json& value, ChatPromptRequest& request) {
  const std::string effort = to_string(value, "reasoning_effort", 32);
  request.render.extra["reasoning_effort"] = effort;
  if (effort == "none") request.render.enable_thinking = false;
}

// Some templates name the variable "thinking".
RenderOptions with_thinking(RenderOptions options, std::optional<bool> by_default) {
  if (!options.enable_thinking && !options.extra.contains("reasoning_effort"))
    options.enable_thinking = by_default;
  if (options.enable_thinking && !options.extra.contains("thinking"))
    options.extra["thinking"] = *options.enable_thinking;
  return options;
}

FieldTable<ChatRequest> logprob_fields() {
  return {
      used<ChatRequest>("max_completion_tokens", integer_schema(1, kMaxInt),
                        "OpenAI's name for max_tokens",
                        [](const Json& v, ChatRequest& t) {
                          t.max_tokens = to_int(v, "max_completion_tokens", 1, kMaxInt);
                        }),
      used<ChatRequest>("logprobs", boolean_schema(),
                        "Return log probabilities of the output tokens",
                        [](const Json& v, ChatRequest& t) { t.logprobs = to_bool(v, "logprobs"); }),
      used<ChatRequest>("top_logprobs", integer_schema(0, kMaxLogprobs),
                        "Number of alternatives per token; requires logprobs",
                        [](const Json& v, ChatRequest& t) {
                          t.top_logprobs = to_int(v, "top_logprobs", 0, kMaxLogprobs);
                        }),
      used<ChatRequest>("thinking_token_budget", integer_schema(0, kMaxInt),
                        "Maximum number of reasoning tokens, after which the answer begins",
                        [](const Json& v, ChatRequest& t) {
                          t.thinking_token_budget = to_int(v, "thinking_token_budget", 0, kMaxInt);
                        }),
  };
}

FieldTable<ChatRequest> refused_chat_fields() {
  const auto no_choice = [](const Json& v) { return v == "none" || v == "auto"; };
  return {
      refused<ChatRequest>("functions", "is OpenAI's former name; use tools"),
      refused<ChatRequest>("function_call", "is OpenAI's former name; use tool_choice", no_choice),
      refused<ChatRequest>("modalities", "only text is supported",
                           [](const Json& v) { return v == Json::array({"text"}); }),
      refused<ChatRequest>("audio", "only text is supported"),
      refused<ChatRequest>("mm_processor_kwargs",
                           "is set for all requests, with --mm-processor-kwargs"),
      refused<ChatRequest>("web_search_options", "is not supported"),
      refused<ChatRequest>("verbosity", "is not supported",
                           [](const Json& v) { return v == "medium"; }),
      refused<ChatRequest>("echo", "is not supported for chat completions", asks_false),
      refused<ChatRequest>(
          "chat_template",
          "templates in requests are not trusted; the model's own template is used"),
  };
}

// Agents send system messages within the conversation, several user messages in a row, and functions
// without parameters. A template that refuses them gets alternating turns and empty parameters.
std::string render_turns(const Json& messages, const RenderOptions& options,
                         const ServedModel& model, const Preparation& preparation) {
  const ChatTemplate& chat_template = *model.text.chat_template;
  try {
    return chat_template.render(messages, options);
  } catch (const RequestError& error) {
    if (error.param() != "messages") throw;
    const Json turns = with_alternating_turns(messages);
    Json tools = with_empty_parameters(options.tools);
    if (turns.is_null() && tools.is_null()) throw;
    preparation.check();
    RenderOptions changed = options;
    if (!tools.is_null()) changed.tools = std::move(tools);
    return chat_template.render(turns.is_null() ? messages : turns, changed);
  }
}

}  // namespace

const FieldTable<ChatPromptRequest>& chat_prompt_fields() {
  using Prompt = ChatPromptRequest;
  static const FieldTable<Prompt> own = {
      {.name = "messages",
       .use = FieldUse::kUsed,
       .schema = messages_schema(),
       .about =
           "The conversation so far, oldest first. Members of a message that the chat template "
           "does not read, such as provider_specific_fields, have no effect",
       .read = [](const Json& v, Prompt& p) { p.messages = read_messages(v, p.images); },
       .required = true},
      used<Prompt>("add_generation_prompt", boolean_schema(),
                   "End the prompt with the start of an assistant message",
                   [](const Json& v, Prompt& p) {
                     p.render.add_generation_prompt = to_bool(v, "add_generation_prompt");
                   }),
      used<Prompt>(
          "continue_final_message", boolean_schema(),
          "Continue the last message instead of starting a new one. Not with add_generation_prompt",
          [](const Json& v, Prompt& p) {
            p.render.continue_final_message = to_bool(v, "continue_final_message");
          }),
      used<Prompt>("chat_template_kwargs", {{"type", "object"}},
                   "Variables passed to the chat template, such as enable_thinking",
                   read_template_kwargs),
      used<Prompt>("documents", {{"type", "array"}, {"items", {{"type", "object"}}}},
                   "Passed to the chat template",
                   [](const Json& v, Prompt& p) {
                     if (!v.is_array() || !std::ranges::all_of(v, &Json::is_object))
                       refuse("documents", "must be a list of objects");
                     p.render.documents = v;
                   }),
      used<Prompt>("reasoning_effort", string_schema(32),
                   "Passed to the chat template; none turns reasoning off", read_reasoning_effort),
  };
  static const FieldTable<Prompt> table = [] {
    FieldTable<Prompt> all = own;
    add_fields(all, tool_fields(),
               [](Prompt& request) -> ToolCallFields& { return request.tools; });
    return all;
  }();
  return table;
}

const FieldTable<ChatRequest>& chat_fields() {
  static const FieldTable<ChatRequest> table = [] {
    FieldTable<ChatRequest> own;
    add_fields(own, chat_prompt_fields(),
               [](ChatRequest& request) -> ChatPromptRequest& { return request.chat; });
    for (const auto& part :
         {logprob_fields(), refused_chat_fields(), hints<ChatRequest>({"prediction"})})
      own.insert(own.end(), part.begin(), part.end());
    return with_generation_fields(std::move(own));
  }();
  return table;
}

PromptText render_chat(const ChatPromptRequest& request, const ServedModel& model,
                       const Preparation& preparation) {
  if (model.text.chat_template == nullptr)
    refuse("messages", "this model has no chat template; use /v1/completions");
  check_tools(request.tools);
  const ToolDialect* dialect = model.dialect.dialect.tools;
  RenderOptions options = with_thinking(request.render, model.dialect.thinking);
  Json messages = request.messages;
  prepare_tool_calls(messages, dialect);
  Json tools = request.tools.active() ? request.tools.tools : Json();
  PromptText prompt;
  // Before tools become text: the markers of calls in it are the server's.
  if (const auto& marks = model.dialect.content_marks)
    prompt.marker = marks->mark({&messages, &tools, &options.documents, &options.extra});
  if (dialect == nullptr || model.dialect.template_has_tools) {
    options.tools = std::move(tools);
  } else {
    messages = with_tools_as_text(messages, tools, *dialect);
  }
  preparation.check();
  options.stop = preparation.stop;
  const auto render = [&](const Json& shown) {
    std::string text = render_turns(shown, options, model, preparation);
    restore_marker(text, prompt.marker);
    return text;
  };
  prompt.text = request.images.empty()
                    ? render(messages)
                    : render_with_images(messages, request.images, model, render);
  return prompt;
}

std::vector<TokenId> chat_prompt_tokens(const Json& body, const ServedModel& model,
                                        const Preparation& preparation,
                                        std::vector<ImageSource> images) {
  ChatRequest request;
  request.chat.images = std::move(images);
  read_fields(body, chat_fields(), request);
  check_model_name(request.model, model);
  // The template writes special tokens itself.
  return counted_chat_tokens(request.chat, request.add_special_tokens.value_or(false), model,
                             preparation);
}

std::vector<TokenId> counted_chat_tokens(const ChatPromptRequest& request, bool add_special_tokens,
                                         const ServedModel& model, const Preparation& preparation) {
  const PromptText prompt = render_chat(request, model, preparation);
  preparation.check();
  std::vector<TokenId> tokens = encode_counted(prompt, add_special_tokens, model, "messages");
  if (request.images.empty()) return tokens;
  return expand_placeholders(tokens, model.images->read(request.images, preparation),
                             model.images->settings(), "messages");
}

GenerationJob prepare_chat(const Json& body, const ServedModel& model,
                           const Preparation& preparation) {
  return prepare_translated_chat(body, {}, model, preparation);
}

GenerationJob prepare_translated_chat(const Json& body, std::vector<ImageSource> images,
                                      const ServedModel& model, const Preparation& preparation) {
  ChatRequest request;
  request.chat.images = std::move(images);
  IgnoredFields ignored = read_fields(body, chat_fields(), request);
  if (request.top_logprobs && !request.logprobs)
    refuse("top_logprobs", "requires logprobs to be true");
  if (request.logprobs) request.engine.sampling.logprobs = request.top_logprobs.value_or(0);
  GenerationJob job = prepare_job(request, model, model.max_model_len, preparation);
  job.ignored = std::move(ignored);
  job.ignored.insert(job.ignored.end(), request.chat.tools.ignored.begin(),
                     request.chat.tools.ignored.end());
  const PromptText prompt = render_chat(request.chat, model, preparation);
  preparation.check();
  prepare_output(request, without_marker(prompt.text, prompt.marker), model, job, preparation);
  preparation.check();
  PreparedPrompt prepared;
  if (!request.chat.images.empty()) {
    if (request.truncate_prompt_tokens)
      refuse("truncate_prompt_tokens", "cannot be combined with images");
    prepared.images = model.images->read(request.chat.images, preparation);
    preparation.check();
  }
  prepared.tokens = prompt_tokens(0, 1, request, model, [&] {
    std::vector<TokenId> tokens = encode_prompt(prompt, request.add_special_tokens.value_or(false),
                                                request, model, "messages");
    if (prepared.images.empty()) return tokens;
    return expand_placeholders(tokens, prepared.images, model.images->settings(), "messages");
  });
  add_prompt(job, std::move(prepared), model, "messages");
  resume_outputs(job, request, model, preparation);
  return job;
}

}  // namespace octavo::api
