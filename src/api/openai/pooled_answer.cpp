#include "api/openai/pooled_answer.h"

#include <chrono>
#include <utility>

#include "api/openai/response_schema.h"

namespace octavo::api {

std::string opened(const Json& object) {
  std::string out = dump(object);
  out.back() = ',';
  return out;
}

std::string opened_list(const std::string& id, const ServedModel& model, const Adapter* adapter,
                        const Usage& usage) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return opened({{"id", id},
                 {"object", "list"},
                 {"created", std::chrono::duration_cast<std::chrono::seconds>(now).count()},
                 {"model", model.answer_name(adapter)},
                 {"system_fingerprint", model.answer_fingerprint(adapter)},
                 {"usage", pooled_usage_json(usage)}});
}

Json pooled_list_schema(Json entry) {
  return list_answer_schema("data", std::move(entry), pooled_usage_schema(),
                            {"object", "model", "data", "usage"});
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

}  // namespace octavo::api
