#include "api/openai/embedding_format.h"

#include <bit>

#include "api/openai/pooled_answer.h"
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
  std::string out = opened_list("embd-" + job_.id, model_, job_.engine.adapter.get(), usage);
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

Json embedding_schema() {
  const auto typed = [](const char* type) { return Json{{"type", type}}; };
  const Json numbers = {{"type", "array"}, {"items", typed("number")}};
  const Json entry = {{"type", "object"},
                      {"properties",
                       {{"object", typed("string")},
                        {"index", typed("integer")},
                        {"embedding", {{"anyOf", {numbers, typed("string")}}}}}},
                      {"required", {"object", "index", "embedding"}}};
  return pooled_list_schema(entry);
}

}  // namespace octavo::api
