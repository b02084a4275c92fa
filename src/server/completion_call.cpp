#include "server/completion_call.h"

#include <fmt/format.h>

#include "server/field_kinds.h"

namespace octavo::server {
namespace {

using Call = CompletionCall;

constexpr size_t kMaxPrompts = 1024;
constexpr size_t kMaxPromptBytes = 8u << 20;
constexpr int kDefaultMaxTokens = 16;

Json prompt_schema() {
  const Json text = string_schema(kMaxPromptBytes);
  Json tokens = tokens_schema();
  tokens["minItems"] = 1;
  const auto list_of = [](Json items) {
    return Json{{"type", "array"}, {"items", std::move(items)}, {"minItems", 1}};
  };
  return {{"anyOf", {text, tokens, list_of(text), list_of(tokens)}}};
}

void read_prompt(const Json& value, Call& call) {
  const auto add_text = [&](const Json& text) {
    call.texts.push_back(to_string(text, "prompt", kMaxPromptBytes));
  };
  if (!value.is_array()) return add_text(value);
  if (value.empty()) refuse("prompt", "is an empty list");
  if (value.front().is_number()) {
    call.tokens.push_back(to_tokens(value, "prompt"));
    return;
  }
  if (value.size() > kMaxPrompts)
    refuse("prompt",
           fmt::format("has {} prompts; at most {} are allowed", value.size(), kMaxPrompts));
  for (const Json& prompt : value) {
    if (value.front().is_array()) {
      call.tokens.push_back(to_tokens(prompt, "prompt"));
    } else {
      add_text(prompt);
    }
  }
}

}  // namespace

const FieldTable<CompletionCall>& completion_fields() {
  static const FieldTable<Call> table = with_generation_fields<Call>({
      {.name = "prompt",
       .use = FieldUse::kUsed,
       .schema = prompt_schema(),
       .about = "Text, a list of texts, a list of token ids or a list of such lists",
       .read = read_prompt,
       .required = true},
      used<Call>("echo", boolean_schema(), "Put the prompt before the answer",
                 [](const Json& v, Call& c) { c.echo = to_bool(v, "echo"); }),
      used<Call>("logprobs", integer_schema(0, kMaxLogprobs),
                 "Log probabilities of the tokens, with so many alternatives; with echo of the "
                 "prompt's too",
                 [](const Json& v, Call& c) {
                   c.engine.sampling.logprobs = to_int(v, "logprobs", 0, kMaxLogprobs);
                 }),
      refused<Call>("suffix", "filling in between is not supported",
                    [](const Json& v) { return v == ""; }),
      refused<Call>("best_of", "is not supported; ask for n and choose",
                    [](const Json& v) { return v == 1; }),
  });
  return table;
}

CompletionJob prepare_completion(const Json& body, const ServedModel& model) {
  CompletionCall call;
  IgnoredFields ignored = read_fields(body, completion_fields(), call);
  const bool prompt_only = call.max_tokens == 0;
  if (prompt_only && !call.echo) refuse("max_tokens", "must be at least 1 without echo");
  if (prompt_only) call.max_tokens = 1;
  CompletionJob job{prepare_job(call, model, kDefaultMaxTokens)};
  job.ignored = std::move(ignored);
  job.echo = call.echo;
  job.prompt_only = prompt_only;
  // Probabilities of an echoed prompt are those of its tokens.
  if (call.echo && job.engine.sampling.logprobs >= 0)
    job.engine.sampling.prompt_logprobs =
        std::max(job.engine.sampling.prompt_logprobs, job.engine.sampling.logprobs);
  for (std::string& text : call.texts) {
    auto tokens = model.text.tokenizer->encode(text, call.add_special_tokens.value_or(true));
    add_prompt(job, {.tokens = std::move(tokens), .text = std::move(text)}, call, model, "prompt");
  }
  for (auto& tokens : call.tokens)
    add_prompt(job, {.tokens = std::move(tokens)}, call, model, "prompt");
  if (call.echo) {
    for (PreparedPrompt& prompt : job.prompts) {
      if (call.texts.empty() || call.truncate_prompt_tokens)
        prompt.text = model.text.tokenizer->decode(prompt.tokens, job.text.skip_special_tokens);
    }
  }
  return job;
}

}  // namespace octavo::server
