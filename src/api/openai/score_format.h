// score_format.h - output in the formats of /v1/rerank and /v1/score.
#pragma once

#include <string>
#include <vector>

#include "api/openai/score_request.h"
#include "api/output_format.h"

namespace octavo::api {

// The score of every pair. Throws RequestError(500) if one is not finite.
std::vector<float> scores_of(const std::vector<OutputEvent>& answers, const ScoringJob& job);

// The most relevant documents first; equal ones in the request's order.
class RerankFormat : public WholeFormat {
 public:
  RerankFormat(const ServedModel& model, const RerankJob& job) : model_(model), job_(job) {}

  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  const ServedModel& model_;
  const RerankJob& job_;
};

class ScoreFormat : public WholeFormat {
 public:
  ScoreFormat(const ServedModel& model, const ScoringJob& job) : model_(model), job_(job) {}

  std::string whole(const std::vector<OutputEvent>& answers, const Usage& usage) override;

 private:
  const ServedModel& model_;
  const ScoringJob& job_;
};

Json rerank_schema();
Json score_schema();

}  // namespace octavo::api
