// model_facts.h - what Ollama's API tells about a model. No MLX.
#pragma once

#include "api/served_model.h"
#include "llm/llm.h"

namespace octavo {

api::ModelFacts model_facts(const Llm& llm);

}  // namespace octavo
