#include "api/openai/embedding_format.h"

#include <bit>
#include <chrono>

#include "base/base64.h"

namespace octavo::api {
void append_embedding(std::string& out, std::span<const float> vector, bool base64) {
  if (base64) {
    static_assert(std::endian::native == std::endian::little);
    out += '"';
    append_base64(out, std::as_bytes(vector));
    out += '"';
    return;
  }
  out += '[';
  for (const float value : vector) {
    append_json_number(out, value);
    out += ',';
  }
  out.back() = ']';
}

std::string EmbeddingFormat::whole(const std::vector<OutputEvent>& answers, const Usage& usage) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const Json head = {{"id", "embd-" + job_.id},
                     {"object", "list"},
                     {"created", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                     {"model", model_.answer_name(job_.engine.adapter.get())},
                     {"system_fingerprint", model_.answer_fingerprint(job_.engine.adapter.get())},
                     {"usage", pooled_usage_json(usage)}};
  std::string out = dump(head);
  out.back() = ',';  // more members follow
  out += "\"data\":[";
  for (const OutputEvent& answer : answers) {
    std::vector<float> vector = answer.embedding;
    finish_embedding(vector, job_.form);
    out += R"({"object":"embedding","index":)" + std::to_string(answer.index) + R"(,"embedding":)";
    append_embedding(out, vector, job_.base64);
    out += "},";
  }
  out.back() = ']';
  out += '}';
  return out;
}

Json pooled_usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"total_tokens", usage.prompt_tokens},
          {"completion_tokens", 0},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json pooled_usage_schema() {
  const Json integer = {{"type", "integer"}};
  return {{"type", "object"},
          {"properties",
           {{"prompt_tokens", integer}, {"total_tokens", integer}, {"completion_tokens", integer}}},
          {"required", {"prompt_tokens", "total_tokens"}}};
}

Json embedding_schema() {
  const auto typed = [](const char* type) { return Json{{"type", type}}; };
  const Json numbers = {{"type", "array"}, {"items", typed("number")}};
  const Json entry = {{"type", "object"},
                      {"properties",
                       {{"object", typed("string")},
                        {"index", typed("integer")},
                        {"embedding", {{"anyOf", {numbers, typed("string")}}}}}},
                      {"required", {"object", "index", "embedding"}}};
  return {{"type", "object"},
          {"properties",
           {{"id", typed("string")},
            {"object", typed("string")},
            {"created", typed("integer")},
            {"model", typed("string")},
            {"system_fingerprint", typed("string")},
            {"data", {{"type", "array"}, {"items", entry}}},
            {"usage", pooled_usage_schema()}}},
          {"required", {"object", "model", "data", "usage"}}};
}

}  // namespace octavo::api
