#include "server/chat_call.h"

#include <algorithm>

#include "base/error.h"
#include "server/chat_input.h"
#include "server/field_kinds.h"

namespace octavo::server {
namespace {

using Call = ChatCall;

// An option of the template alone, whatever its type.
void read_template_kwargs(const Json& value, ChatPromptCall& call) {
  if (!value.is_object()) refuse("chat_template_kwargs", "must be an object");
  for (const auto& [name, option] : value.items()) call.render.extra[name] = option;
}

void read_reasoning_effort(const Json& value, ChatPromptCall& call) {
  call.render.extra["reasoning_effort"] = to_string(value, "reasoning_effort", 32);
}

FieldTable<Call> logprob_fields() {
  return {
      used<Call>("max_completion_tokens", integer_schema(1, kMaxInt),
                 "OpenAI's name for max_tokens",
                 [](const Json& v, Call& c) {
                   c.max_tokens = to_int(v, "max_completion_tokens", 1, kMaxInt);
                 }),
      used<Call>("logprobs", boolean_schema(), "Add log probabilities of the answer's tokens",
                 [](const Json& v, Call& c) { c.logprobs = to_bool(v, "logprobs"); }),
      used<Call>("top_logprobs", integer_schema(0, kMaxLogprobs),
                 "Alternatives to each token, with logprobs",
                 [](const Json& v, Call& c) {
                   c.top_logprobs = to_int(v, "top_logprobs", 0, kMaxLogprobs);
                 }),
  };
}

FieldTable<Call> refused_chat_fields() {
  const auto no_tools = "tool calls are not supported yet";
  const auto no_choice = [](const Json& v) { return v == "none" || v == "auto"; };
  return {
      refused<Call>("tools", no_tools),
      refused<Call>("tool_choice", no_tools, no_choice),
      refused<Call>("functions", no_tools),
      refused<Call>("function_call", no_tools, no_choice),
      refused<Call>("modalities", "only text is supported",
                    [](const Json& v) { return v == Json::array({"text"}); }),
      refused<Call>("audio", "only text is supported"),
      refused<Call>("mm_processor_kwargs", "only text is supported"),
      refused<Call>("web_search_options", "is not supported"),
      refused<Call>("verbosity", "is not supported", [](const Json& v) { return v == "medium"; }),
      refused<Call>("echo", "is not supported for chats", asks_false),
      refused<Call>("chat_template",
                    "a request's own template is not trusted; the model's is used"),
  };
}

}  // namespace

const FieldTable<ChatPromptCall>& chat_prompt_fields() {
  using Prompt = ChatPromptCall;
  static const FieldTable<Prompt> table = {
      {.name = "messages",
       .use = FieldUse::kUsed,
       .schema = messages_schema(),
       .about = "The conversation so far, oldest first",
       .read = [](const Json& v, Prompt& c) { c.messages = read_messages(v); },
       .required = true},
      used<Prompt>("add_generation_prompt", boolean_schema(), "Begin the assistant's message",
                   [](const Json& v, Prompt& c) {
                     c.render.add_generation_prompt = to_bool(v, "add_generation_prompt");
                   }),
      used<Prompt>("continue_final_message", boolean_schema(),
                   "Leave the last message open, to be continued. Not with add_generation_prompt",
                   [](const Json& v, Prompt& c) {
                     c.render.continue_final_message = to_bool(v, "continue_final_message");
                   }),
      used<Prompt>("chat_template_kwargs", {{"type", "object"}},
                   "Handed to the template, such as enable_thinking", read_template_kwargs),
      used<Prompt>("documents", {{"type", "array"}, {"items", {{"type", "object"}}}},
                   "Handed to the template",
                   [](const Json& v, Prompt& c) {
                     if (!v.is_array() || !std::ranges::all_of(v, &Json::is_object))
                       refuse("documents", "must be a list of objects");
                     c.render.documents = v;
                   }),
      used<Prompt>("reasoning_effort", string_schema(32), "Handed to the template",
                   read_reasoning_effort),
  };
  return table;
}

const FieldTable<ChatCall>& chat_fields() {
  static const FieldTable<Call> table = [] {
    FieldTable<Call> own;
    add_fields(own, chat_prompt_fields(), [](Call& call) -> ChatPromptCall& { return call.chat; });
    for (const auto& part : {logprob_fields(), refused_chat_fields(),
                             hints<Call>({"parallel_tool_calls", "prediction"})})
      own.insert(own.end(), part.begin(), part.end());
    return with_generation_fields(std::move(own));
  }();
  return table;
}

std::string render_chat(const ChatPromptCall& call, const ServedModel& model) {
  if (model.text.chat_template == nullptr)
    refuse("messages", "this model has no chat template; use /v1/completions");
  return model.text.chat_template->render(call.messages, call.render);
}

namespace {

std::vector<TokenId> tokens_of(const ChatCall& call, const ServedModel& model) {
  // The template writes special tokens itself.
  return model.text.tokenizer->encode(render_chat(call.chat, model),
                                      call.add_special_tokens.value_or(false));
}

}  // namespace

std::vector<TokenId> chat_prompt_tokens(const Json& body, const ServedModel& model) {
  ChatCall call;
  read_fields(body, chat_fields(), call);
  check_model_name(call.model, model);
  return tokens_of(call, model);
}

GenerationJob prepare_chat(const Json& body, const ServedModel& model) {
  ChatCall call;
  IgnoredFields ignored = read_fields(body, chat_fields(), call);
  if (call.top_logprobs && !call.logprobs) refuse("top_logprobs", "needs logprobs to be true");
  if (call.logprobs) call.engine.sampling.logprobs = call.top_logprobs.value_or(0);
  GenerationJob job = prepare_job(call, model, model.max_model_len);
  job.ignored = std::move(ignored);
  std::vector<TokenId> tokens = tokens_of(call, model);
  truncate(tokens, call, model);
  add_prompt(job, {.tokens = std::move(tokens)}, model, "messages");
  return job;
}

}  // namespace octavo::server
