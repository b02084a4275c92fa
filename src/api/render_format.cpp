#include "api/render_format.h"

namespace octavo::api {

Json rendered_prompt(const GenerationJob& job, size_t prompt, const std::string& id,
                     const ServedModel& model) {
  const Request& engine = job.engine;
  return {{"request_id", id},
          {"model", model.answer_name(engine.adapter.get())},
          {"token_ids", job.prompts[prompt].tokens},
          {"sampling_params", {{"n", engine.n}, {"max_tokens", engine.max_tokens}}},
          {"stream", job.stream},
          {"cache_salt", engine.cache_salt.empty() ? Json() : Json(engine.cache_salt)},
          {"priority", engine.priority}};
}

Json rendered_prompt_schema() {
  return {{"type", "object"},
          {"properties",
           {{"request_id", {{"type", "string"}}},
            {"model", {{"type", "string"}}},
            {"token_ids", {{"type", "array"}, {"items", {{"type", "integer"}}}}},
            {"sampling_params", {{"type", "object"}}},
            {"stream", {{"type", "boolean"}}},
            {"cache_salt", {{"type", {"string", "null"}}}},
            {"priority", {{"type", "integer"}}}}},
          {"required", {"request_id", "model", "token_ids"}}};
}

}  // namespace octavo::api
