// score_request.h - the bodies of /v1/rerank and /v1/score, as vLLM's, Jina's and Cohere's clients send
// them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/openai/scored_pairs.h"

namespace octavo::api {

// The fields that both share.
struct ScoringRequest {
  std::string model = {};
  PairOptions pairs = {};
  std::optional<bool> use_activation = {};  // nothing: as the model's files say
  std::string request_id = {};
  Request engine = {};  // fields without model-dependent defaults; no prompt
};

struct RerankRequest {
  ScoringRequest shared = {};
  NamedTexts query = {};
  NamedTexts documents = {};
  int top_n = 0;  // 0: all
  bool return_documents = true;
};

struct ScoreRequest {
  ScoringRequest shared = {};
  NamedTexts first = {};
  NamedTexts second = {};
};

struct RerankJob : ScoringJob {
  size_t top_n = 0;
  std::vector<std::string> documents = {};  // empty: they are not returned
};

const FieldTable<RerankRequest>& rerank_fields();
const FieldTable<ScoreRequest>& score_fields();

// Text worker: tokenize. Throw RequestError, also if the model generates text.
RerankJob prepare_rerank(const Json& body, const ServedModel& model,
                         const Preparation& preparation = {});
ScoringJob prepare_score(const Json& body, const ServedModel& model,
                         const Preparation& preparation = {});

}  // namespace octavo::api
