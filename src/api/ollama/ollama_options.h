// ollama_options.h - the field `options` of Ollama's API.
#pragma once

#include "api/ollama/ollama_request.h"

namespace octavo::api {

const FieldTable<OllamaRequest>& ollama_options();

// Reads the options into `request`. Throws RequestError(400) that names the option.
void read_ollama_options(const Json& value, OllamaRequest& request);
// Decides what depends on other options and on the model, after all were read.
void settle_ollama_options(OllamaRequest& request, const ServedModel& model);

// The options' names in the chat request, for errors.
const std::vector<FieldName>& ollama_option_names();

// The model with a context of at most num_ctx tokens.
ServedModel with_context(const ServedModel& model, std::optional<int> num_ctx);

}  // namespace octavo::api
