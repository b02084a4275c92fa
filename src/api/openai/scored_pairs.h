// scored_pairs.h - the prompts that score pairs of texts. Text worker.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "api/generation_request.h"
#include "api/openai/truncation.h"
#include "generation/embedding.h"
#include "kernels/types/score_head.h"

namespace octavo::api {

inline constexpr size_t kMostScored = 2048;  // pairs of a request, as texts of /v1/embeddings

// Texts as a request sent them.
struct NamedTexts {
  std::string field = {};
  bool listed = false;  // the field's value is a list
  std::vector<std::string> texts = {};

  std::string name(size_t text) const;  // "documents[3]"
};

// A string, {"text": STRING}, or a list of them if `most` > 1.
Json texts_schema(size_t most);
// Throws RequestError(400) naming the field.
NamedTexts to_texts(const Json& value, const std::string& field, size_t most);

struct PairOptions {
  Truncation truncation = {};
  int max_tokens_per_doc = 0;    // 0: any
  std::string instruction = {};  // empty: the model's own
};

struct ScoringJob : GenerationJob {
  std::shared_ptr<const ScoreHead> head = nullptr;  // set: the prompts are the pairs
  bool sigmoid = true;                              // with a head: of its logit
  // Without a head: the two prompts of each pair, whose vectors are compared.
  std::vector<std::array<size_t, 2>> compared = {};
  EmbeddingForm form = {};  // of those vectors
};

// Throws RequestError(400) if the model cannot score pairs.
void require_scores(const ServedModel& model);

// Adds the prompts of every pair to the job, whose `engine` is complete. One first text is paired with
// every second one; otherwise they are paired in order. Throws RequestError(400).
void add_pairs(ScoringJob& job, const NamedTexts& first, const NamedTexts& second,
               const PairOptions& options, const ServedModel& model,
               const Preparation& preparation);

}  // namespace octavo::api
