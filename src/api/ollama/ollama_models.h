// ollama_models.h - what Ollama's API tells about the served model.
#pragma once

#include <string>

#include "api/fields/body_fields.h"
#include "api/served_model.h"

namespace octavo::api {

// The version of Ollama whose API this is. Clients refuse servers that they take for older ones.
inline constexpr const char* kOllamaApiVersion = "0.32.0";
// Clients show a time this far ahead as "forever".
inline constexpr const char* kNeverExpires = "2300-01-01T00:00:00Z";

// Bodies of /api/tags and /api/ps.
Json ollama_tags(const ServedModel& model);
Json ollama_ps(const ServedModel& model);
// Body of /api/show.
Json ollama_show(const ServedModel& model);

// A request that names a model.
struct OllamaModelRequest {
  std::string model = {};
};

const FieldTable<OllamaModelRequest>& ollama_show_fields();
const FieldTable<OllamaModelRequest>& ollama_pull_fields();

}  // namespace octavo::api
