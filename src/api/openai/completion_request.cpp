#include "api/openai/completion_request.h"

#include "api/fields/field_kinds.h"
#include "api/resume.h"

namespace octavo::api {
namespace {

constexpr size_t kMaxPrompts = 1024;
constexpr int kDefaultMaxTokens = 16;

}  // namespace

const FieldTable<CompletionRequest>& completion_fields() {
  static const FieldTable<CompletionRequest> table = with_generation_fields<CompletionRequest>({
      {.name = "prompt",
       .use = FieldUse::kUsed,
       .schema = prompt_list_schema(kMaxPrompts),
       .about = "A string, a list of strings, a list of token ids, or a list of such lists",
       .read = [](const Json& v,
                  CompletionRequest& t) { t.prompts = to_prompts(v, "prompt", kMaxPrompts); },
       .required = true},
      used<CompletionRequest>(
          "echo", boolean_schema(), "Return the prompt before the output",
          [](const Json& v, CompletionRequest& t) { t.echo = to_bool(v, "echo"); }),
      used<CompletionRequest>(
          "logprobs", integer_schema(0, kMaxLogprobs),
          "Log probabilities of the output tokens, with this many alternatives; with "
          "echo, of the prompt's tokens too",
          [](const Json& v, CompletionRequest& t) {
            t.engine.sampling.logprobs = to_int(v, "logprobs", 0, kMaxLogprobs);
          }),
      refused<CompletionRequest>("suffix", "fill-in-the-middle is not supported",
                                 [](const Json& v) { return v == ""; }),
      refused<CompletionRequest>("best_of", "is not supported; use n and choose in the client",
                                 [](const Json& v) { return v == 1; }),
  });
  return table;
}

CompletionJob prepare_completion(const Json& body, const ServedModel& model,
                                 const Preparation& preparation) {
  CompletionRequest request;
  IgnoredFields ignored = read_fields(body, completion_fields(), request);
  const bool prompt_only = request.max_tokens == 0;
  if (prompt_only && !request.echo) refuse("max_tokens", "must be at least 1 without echo");
  if (prompt_only) request.max_tokens = 1;
  CompletionJob job{prepare_job(request, model, kDefaultMaxTokens, preparation)};
  job.ignored = std::move(ignored);
  job.echo = request.echo;
  job.prompt_only = prompt_only;
  // An echoed prompt needs its own log probabilities.
  if (request.echo && job.engine.sampling.logprobs >= 0)
    job.engine.sampling.prompt_logprobs =
        std::max(job.engine.sampling.prompt_logprobs, job.engine.sampling.logprobs);
  const size_t count = request.prompts.texts.size() + request.prompts.tokens.size();
  for (std::string& text : request.prompts.texts) {
    preparation.check();
    PromptText prompt{.text = std::move(text)};
    auto tokens = prompt_tokens(job.prompts.size(), count, request, model, [&] {
      return encode_prompt(prompt, request.add_special_tokens.value_or(true), request, model,
                           "prompt");
    });
    add_prompt(job, {.tokens = std::move(tokens), .text = std::move(prompt.text)}, model, "prompt");
  }
  for (auto& given : request.prompts.tokens) {
    auto tokens =
        prompt_tokens(job.prompts.size(), count, request, model, [&] { return std::move(given); });
    add_prompt(job, {.tokens = std::move(tokens)}, model, "prompt");
  }
  if (request.echo) {
    for (PreparedPrompt& prompt : job.prompts) {
      if (request.prompts.texts.empty() || request.truncate_prompt_tokens)
        prompt.text = model.text.tokenizer->decode(prompt.tokens, job.text.skip_special_tokens);
    }
  }
  resume_outputs(job, request, model, preparation);
  return job;
}

}  // namespace octavo::api
