#include "api/openai/score_format.h"

#include <algorithm>
#include <numeric>

#include "api/openai/pooled_answer.h"
#include "generation/score.h"

namespace octavo::api {
namespace {

// Indexes of the documents, the most relevant first.
std::vector<size_t> ranked(const std::vector<float>& scores) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  return order;
}

}  // namespace

std::vector<float> scores_of(const std::vector<OutputEvent>& answers, const ScoringJob& job) {
  std::vector<float> scores;
  if (job.head) {
    for (const OutputEvent& answer : answers)
      scores.push_back(head_score(*job.head, answer.embedding, job.sigmoid));
    return scores;
  }
  std::vector<std::vector<float>> vectors;
  for (const OutputEvent& answer : answers) {
    vectors.push_back(answer.embedding);
    finish_embedding(vectors.back(), job.form);
  }
  for (const auto& [first, second] : job.compared)
    scores.push_back(cosine_score(vectors[first], vectors[second]));
  return scores;
}

std::string RerankFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  const std::vector<float> scores = scores_of(answers, job_);
  const Adapter* adapter = job_.engine.adapter.get();
  // Cohere's clients read `meta`, the others `usage`.
  std::string out = opened({{"id", "rerank-" + job_.id},
                            {"model", model_.answer_name(adapter)},
                            {"system_fingerprint", model_.answer_fingerprint(adapter)},
                            {"usage", pooled_usage_json(usage)},
                            {"meta", {{"tokens", {{"input_tokens", usage.prompt_tokens}}}}}});
  out += "\"results\":[";
  std::vector<size_t> order = ranked(scores);
  order.resize(job_.top_n);
  for (const size_t index : order) {
    out += "{\"index\":" + std::to_string(index) + ",\"relevance_score\":";
    append_json_number(out, scores[index]);
    if (!job_.documents.empty()) {
      out += ",\"document\":{\"text\":";
      append_json_string(out, job_.documents[index]);
      out += '}';
    }
    out += "},";
  }
  out.back() = ']';
  return out + '}';
}

std::string ScoreFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  const std::vector<float> scores = scores_of(answers, job_);
  std::string out = opened_list("score-" + job_.id, model_, job_.engine.adapter.get(), usage);
  out += "\"data\":[";
  for (size_t i = 0; i < scores.size(); ++i) {
    out += "{\"index\":" + std::to_string(i) + ",\"object\":\"score\",\"score\":";
    append_json_number(out, scores[i]);
    out += "},";
  }
  out.back() = ']';
  return out + '}';
}

Json rerank_schema() {
  const auto typed = [](const char* type) { return Json{{"type", type}}; };
  const Json document = {{"type", "object"}, {"properties", {{"text", typed("string")}}}};
  const Json result = {
      {"type", "object"},
      {"properties",
       {{"index", typed("integer")}, {"relevance_score", typed("number")}, {"document", document}}},
      {"required", {"index", "relevance_score"}}};
  return {{"type", "object"},
          {"properties",
           {{"id", typed("string")},
            {"model", typed("string")},
            {"system_fingerprint", typed("string")},
            {"usage", pooled_usage_schema()},
            {"meta", typed("object")},
            {"results", {{"type", "array"}, {"items", result}}}}},
          {"required", {"id", "model", "usage", "results"}}};
}

Json score_schema() {
  const auto typed = [](const char* type) { return Json{{"type", type}}; };
  const Json entry = {
      {"type", "object"},
      {"properties",
       {{"index", typed("integer")}, {"object", typed("string")}, {"score", typed("number")}}},
      {"required", {"index", "object", "score"}}};
  return pooled_list_schema(entry);
}

}  // namespace octavo::api
