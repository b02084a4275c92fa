#include "capi/event_json.h"

#include <algorithm>

#include "api/openai/embedding_format.h"
#include "api/openai/envelope.h"
#include "api/openai/logprob_json.h"
#include "api/openai/score_format.h"

namespace octavo::capi {

using api::Json;
using api::OutputEvent;

namespace {

// The entry of tool call `index`, created on first use.
Json& call_of(Json& calls, int index) {
  for (Json& call : calls) {
    if (call["index"] == index) return call;
  }
  calls.push_back({{"index", index}, {"id", nullptr}, {"name", nullptr}, {"arguments", ""}});
  return calls.back();
}

// Splits a chat's parts into content, reasoning and tool calls.
void add_parts(const std::vector<OutputPart>& parts, Json& choice) {
  std::string content;
  std::string reasoning;
  Json calls = Json::array();
  for (const OutputPart& part : parts) {
    if (part.kind == PartKind::kContent) content += part.text;
    if (part.kind == PartKind::kReasoning) reasoning += part.text;
    if (part.kind == PartKind::kToolCall) {
      Json& call = call_of(calls, part.call);
      call["id"] = part.id;
      call["name"] = part.name;
    }
    if (part.kind == PartKind::kToolArguments)
      call_of(calls, part.call)["arguments"].get_ref<std::string&>() += part.text;
  }
  choice["text"] = std::move(content);
  if (!reasoning.empty()) choice["reasoning"] = std::move(reasoning);
  if (!calls.empty()) choice["tool_calls"] = std::move(calls);
}

// Keyed by token id like prompt_logprobs, whose first entry has no probability.
Json logprobs_by_id(const Tokenizer& tokenizer, const std::vector<TokenLogprobs>& tokens) {
  Json all = api::prompt_logprobs_json(tokenizer, tokens);
  all.erase(all.begin());
  return all;
}

Json choice_of(const OutputEvent& answer, const api::GenerationJob& job, bool called,
               const Tokenizer& tokenizer) {
  Json choice = {{"index", answer.index}, {"text", answer.text}};
  if (job.text.chat) add_parts(answer.parts, choice);
  choice["token_ids"] = answer.tokens;
  choice["finish_reason"] = called && answer.finish == FinishReason::kStop
                                ? Json("tool_calls")
                                : api::finish_reason_of(answer);
  choice["stop_reason"] = api::stop_reason_of(answer);
  if (job.engine.sampling.logprobs >= 0)
    choice["logprobs"] = logprobs_by_id(tokenizer, answer.logprobs);
  if (job.wants_prompt_logprobs)
    choice["prompt_logprobs"] = api::prompt_logprobs_json(tokenizer, answer.prompt_logprobs);
  return choice;
}

}  // namespace

std::string begin_event(const api::GenerationJob& job) {
  Json prompts = Json::array();
  for (const api::PreparedPrompt& prompt : job.prompts) prompts.push_back(prompt.tokens);
  return api::dump(Json{{"type", "begin"},
                        {"id", job.id},
                        {"prompt_token_ids", std::move(prompts)},
                        {"ignored", job.ignored}});
}

std::string answers_event(const std::vector<OutputEvent>& answers, const api::GenerationJob& job,
                          const std::vector<bool>& called, const Tokenizer& tokenizer) {
  Json choices = Json::array();
  for (const OutputEvent& answer : answers)
    choices.push_back(choice_of(answer, job, called[static_cast<size_t>(answer.index)], tokenizer));
  return api::dump(Json{{"type", "answer"}, {"choices", std::move(choices)}});
}

std::string embedding_event(const std::vector<OutputEvent>& answers, const api::EmbeddingJob& job) {
  std::string out = R"({"type":"embedding","data":[)";
  for (const OutputEvent& answer : answers) {
    std::vector<float> vector = answer.embedding;
    if (!vector.empty()) finish_embedding(vector, job.form);
    out += R"({"index":)" + std::to_string(answer.index) + R"(,"embedding":)";
    if (vector.empty()) {  // cancelled
      out += "null";
    } else {
      api::append_embedding(out, vector, job.base64);
    }
    out += "},";
  }
  out.back() = ']';
  return out + '}';
}

std::string score_event(const std::vector<OutputEvent>& answers, const api::ScoringJob& job) {
  std::string out = R"({"type":"score","scores":)";
  const bool cancelled = std::ranges::any_of(
      answers, [](const OutputEvent& answer) { return answer.embedding.empty(); });
  if (cancelled) return out + "null}";
  out += '[';
  for (const float score : api::scores_of(answers, job)) {
    api::append_json_number(out, score);
    out += ',';
  }
  out.back() = ']';
  return out + '}';
}

std::string end_event(const api::Usage& usage) {
  return api::dump(Json{{"type", "end"}, {"usage", api::usage_json(usage)}});
}

}  // namespace octavo::capi
