#include "api/openai/completion_request.h"

#include "api/fields/field_kinds.h"

namespace octavo::server {
namespace {

using Call = CompletionCall;

constexpr size_t kMaxPrompts = 1024;
constexpr int kDefaultMaxTokens = 16;

}  // namespace

const FieldTable<CompletionCall>& completion_fields() {
  static const FieldTable<Call> table = with_generation_fields<Call>({
      {.name = "prompt",
       .use = FieldUse::kUsed,
       .schema = prompt_list_schema(kMaxPrompts),
       .about = "Text, a list of texts, a list of token ids or a list of such lists",
       .read = [](const Json& v, Call& c) { c.prompts = to_prompts(v, "prompt", kMaxPrompts); },
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
  for (std::string& text : call.prompts.texts) {
    auto tokens = model.text.tokenizer->encode(text, call.add_special_tokens.value_or(true));
    truncate(tokens, call, model);
    add_prompt(job, {.tokens = std::move(tokens), .text = std::move(text)}, model, "prompt");
  }
  for (auto& tokens : call.prompts.tokens) {
    truncate(tokens, call, model);
    add_prompt(job, {.tokens = std::move(tokens)}, model, "prompt");
  }
  if (call.echo) {
    for (PreparedPrompt& prompt : job.prompts) {
      if (call.prompts.texts.empty() || call.truncate_prompt_tokens)
        prompt.text = model.text.tokenizer->decode(prompt.tokens, job.text.skip_special_tokens);
    }
  }
  return job;
}

}  // namespace octavo::server
