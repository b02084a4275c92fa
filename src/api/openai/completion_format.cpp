#include "api/openai/completion_format.h"

#include "api/openai/logprob_json.h"

namespace octavo::api {

CompletionFormat::CompletionFormat(const ServedModel& model, const CompletionJob& job)
    : model_(model),
      job_(job),
      envelope_(model, job, "cmpl-" + job.id, "text_completion"),
      choices_(job.prompts.size() * static_cast<size_t>(job.engine.n)) {}

const PreparedPrompt& CompletionFormat::prompt_of(const OutputEvent& event) const {
  return job_.prompts[static_cast<size_t>(event.index / job_.engine.n)];
}

// Prompt-only requests still generate one token; do not count it.
Usage CompletionFormat::counted(const Usage& usage) const {
  Usage counted = usage;
  if (job_.prompt_only) counted.completion_tokens = 0;
  return counted;
}

Json CompletionFormat::logprobs_of(const OutputEvent& event, bool with_prompt) {
  if (job_.engine.sampling.logprobs < 0) return nullptr;
  Choice& choice = choices_[static_cast<size_t>(event.index)];
  CompletionLogprobs logprobs(*model_.text.tokenizer, choice.text_offset);
  if (with_prompt) {
    logprobs.add_first(prompt_of(event).tokens.front());
    for (const TokenLogprobs& token : choice.prompt_logprobs) logprobs.add(token);
  }
  if (!job_.prompt_only) {
    for (const TokenLogprobs& token : event.logprobs) logprobs.add(token);
  }
  return logprobs.take();
}

Json CompletionFormat::choice_of(const OutputEvent& event) {
  Choice& choice = choices_[static_cast<size_t>(event.index)];
  const bool first = !std::exchange(choice.begun, true);
  const bool with_prompt = first && job_.echo;
  std::string text = with_prompt ? prompt_of(event).text : "";
  if (!job_.prompt_only) text += event.text;
  Json json = {{"index", event.index}, {"text", std::move(text)}};
  json["logprobs"] = logprobs_of(event, with_prompt);
  // max_tokens 0 ends by length.
  json["finish_reason"] =
      job_.prompt_only && event.finish ? Json("length") : finish_reason_of(event);
  json["stop_reason"] = job_.prompt_only ? Json() : stop_reason_of(event);
  if (job_.reports_tokens())
    json["token_ids"] = job_.prompt_only ? std::vector<TokenId>{} : event.tokens;
  if (job_.return_token_ids && first) json["prompt_token_ids"] = prompt_of(event).tokens;
  return json;
}

void CompletionFormat::append_event(std::string& out, const OutputEvent& event,
                                    const Usage& usage) {
  Choice& choice = choices_[static_cast<size_t>(event.index)];
  choice.prompt_logprobs.insert(choice.prompt_logprobs.end(), event.prompt_logprobs.begin(),
                                event.prompt_logprobs.end());
  const bool reports_tokens = job_.reports_tokens() || job_.engine.sampling.logprobs >= 0;
  // Send a chunk for the first token even if it has no text: clients measure its arrival.
  const bool first = !choice.begun;
  if (event.tokens.empty() && !event.finish) return;
  if (event.text.empty() && !event.finish && !reports_tokens && !first) return;
  envelope_.append_chunk(out, dump(choice_of(event)), counted(usage));
}

void CompletionFormat::append_end(std::string& out, const Usage& usage) {
  if (job_.include_usage) envelope_.append_usage(out, counted(usage));
  out += kSseDone;
}

void CompletionFormat::append_error(std::string& out, const RequestError& error) {
  append_sse_error(out, error);
}

std::string CompletionFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  Json choices = Json::array();
  for (const OutputEvent& answer : answers) {
    choices_[static_cast<size_t>(answer.index)].prompt_logprobs = answer.prompt_logprobs;
    Json choice = choice_of(answer);
    if (job_.wants_prompt_logprobs)
      choice["prompt_logprobs"] =
          prompt_logprobs_json(*model_.text.tokenizer, answer.prompt_logprobs);
    choices.push_back(std::move(choice));
  }
  return dump(envelope_.whole(std::move(choices), counted(usage)));
}

}  // namespace octavo::api
