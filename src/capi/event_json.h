// event_json.h - the events of octavo.h as JSON text.
#pragma once

#include <string>
#include <vector>

#include "api/openai/embedding_request.h"
#include "api/openai/scored_pairs.h"
#include "api/output_events.h"

namespace octavo::capi {

std::string begin_event(const api::GenerationJob& job);
// `called`: by index, whether a choice has called a tool so far.
std::string answers_event(const std::vector<api::OutputEvent>& answers,
                          const api::GenerationJob& job, const std::vector<bool>& called,
                          const Tokenizer& tokenizer);
// Throws RequestError(500) when a vector is not finite.
std::string embedding_event(const std::vector<api::OutputEvent>& answers,
                            const api::EmbeddingJob& job);
// Throws RequestError(500) when a score is not finite.
std::string score_event(const std::vector<api::OutputEvent>& answers, const api::ScoringJob& job);
std::string end_event(const api::Usage& usage);

}  // namespace octavo::capi
