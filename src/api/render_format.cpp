#include "api/render_format.h"

namespace octavo::api {

namespace {

// Of vLLM's MultiModalFeatures, what the prefix cache knows of images; no pixels.
Json features_of(const PreparedPrompt& prompt) {
  Json hashes = Json::array();
  Json places = Json::array();
  for (const PromptImage& image : prompt.images) {
    hashes.push_back(image.identifier);
    places.push_back({{"offset", image.offset}, {"length", image.length()}});
  }
  return {{"mm_hashes", {{"image", std::move(hashes)}}},
          {"mm_placeholders", {{"image", std::move(places)}}}};
}

}  // namespace

Json rendered_prompt(const GenerationJob& job, size_t prompt, const std::string& id,
                     const ServedModel& model) {
  const Request& engine = job.engine;
  Json rendered = {{"request_id", id},
                   {"model", model.answer_name(engine.adapter.get())},
                   {"token_ids", job.prompts[prompt].tokens},
                   {"sampling_params", {{"n", engine.n}, {"max_tokens", engine.max_tokens}}},
                   {"stream", job.stream},
                   {"cache_salt", engine.cache_salt.empty() ? Json() : Json(engine.cache_salt)},
                   {"priority", engine.priority}};
  if (!job.prompts[prompt].images.empty()) rendered["features"] = features_of(job.prompts[prompt]);
  return rendered;
}

Json rendered_prompt_schema() {
  return {{"type", "object"},
          {"properties",
           {{"request_id", {{"type", "string"}}},
            {"model", {{"type", "string"}}},
            {"token_ids", {{"type", "array"}, {"items", {{"type", "integer"}}}}},
            {"sampling_params", {{"type", "object"}}},
            {"features", {{"type", "object"}}},
            {"stream", {{"type", "boolean"}}},
            {"cache_salt", {{"type", {"string", "null"}}}},
            {"priority", {{"type", "integer"}}}}},
          {"required", {"request_id", "model", "token_ids"}}};
}

}  // namespace octavo::api
