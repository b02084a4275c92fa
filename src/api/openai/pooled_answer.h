// pooled_answer.h - what the answers to embeddings, scores and rerankings share.
#pragma once

#include <string>

#include "api/output_events.h"
#include "api/served_model.h"

namespace octavo::api {

// The object without its closing brace, for more members.
std::string opened(const Json& object);

// An opened list with all members but `data`. `id` with its prefix; `adapter` may be null.
std::string opened_list(const std::string& id, const ServedModel& model, const Adapter* adapter,
                        const Usage& usage);
// Of a list of such entries.
Json pooled_list_schema(Json entry);

// The usage of requests that only read prompts.
Json pooled_usage_json(const Usage& usage);
Json pooled_usage_schema();

}  // namespace octavo::api
