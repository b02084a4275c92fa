#include "server/chat_format.h"

#include <fmt/format.h>

#include "server/logprob_json.h"

namespace octavo::server {

ChatFormat::ChatFormat(const ServedModel& model, const GenerationJob& job)
    : model_(model),
      job_(job),
      envelope_(model, "chatcmpl-" + job.id,
                job.stream ? "chat.completion.chunk" : "chat.completion",
                job.continuous_usage_stats),
      begun_(static_cast<size_t>(job.engine.n)) {}

// One choice of a chunk, by hand: this runs for every token.
void ChatFormat::append_content(std::string& out, const AnswerEvent& event) const {
  out += fmt::format(R"({{"index":{},"delta":{{"content":)", event.index);
  append_json_string(out, event.text);
  out += "},\"logprobs\":";
  out +=
      event.logprobs.empty() ? "null" : dump(chat_logprobs(*model_.text.tokenizer, event.logprobs));
  out += fmt::format(R"(,"finish_reason":{},"stop_reason":{})", dump(finish_reason_of(event)),
                     dump(stop_reason_of(event)));
  if (job_.return_token_ids) out += ",\"token_ids\":" + dump(Json(event.tokens));
  out += '}';
}

void ChatFormat::append_event(std::string& out, const AnswerEvent& event, const Usage& usage) {
  if (event.tokens.empty() && !event.finish) return;
  const auto index = static_cast<size_t>(event.index);
  std::string choice;
  if (!begun_[index]) {
    begun_[index] = true;
    choice = fmt::format(
        R"({{"index":{},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null)",
        event.index);
    if (job_.return_token_ids)
      choice += ",\"prompt_token_ids\":" + dump(Json(job_.prompts[0].tokens));
    choice += '}';
    envelope_.append_chunk(out, choice, usage);
  }
  if (event.text.empty() && !event.finish && event.logprobs.empty() && !job_.return_token_ids)
    return;
  choice.clear();
  append_content(choice, event);
  envelope_.append_chunk(out, choice, usage);
}

void ChatFormat::append_end(std::string& out, const Usage& usage) {
  if (job_.include_usage) envelope_.append_usage(out, usage);
  out += kSseDone;
}

void ChatFormat::append_error(std::string& out, const RequestError& error) {
  append_sse_error(out, error);
}

Json ChatFormat::choice_of(const AnswerEvent& answer) const {
  Json choice = {
      {"index", answer.index},
      {"message", {{"role", "assistant"}, {"content", answer.text}, {"refusal", nullptr}}}};
  choice["logprobs"] = job_.engine.sampling.logprobs < 0
                           ? Json()
                           : chat_logprobs(*model_.text.tokenizer, answer.logprobs);
  choice["finish_reason"] = finish_reason_of(answer);
  choice["stop_reason"] = stop_reason_of(answer);
  if (job_.return_token_ids) choice["token_ids"] = answer.tokens;
  return choice;
}

std::string ChatFormat::whole(const std::vector<AnswerEvent>& answers, const Usage& usage) {
  Json choices = Json::array();
  for (const AnswerEvent& answer : answers) choices.push_back(choice_of(answer));
  Json whole = envelope_.whole(std::move(choices), usage);
  if (job_.wants_prompt_logprobs)
    whole["prompt_logprobs"] =
        prompt_logprobs_json(*model_.text.tokenizer, answers.front().prompt_logprobs);
  if (job_.return_token_ids) whole["prompt_token_ids"] = job_.prompts.front().tokens;
  return dump(whole);
}

}  // namespace octavo::server
