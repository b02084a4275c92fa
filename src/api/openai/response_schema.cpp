#include "api/openai/response_schema.h"

#include <utility>

#include "api/fields/operation.h"

namespace octavo::api {
namespace {

Json typed(const char* type) { return {{"type", type}}; }

Json usage_schema() {
  return {{"type", "object"},
          {"properties",
           {{"prompt_tokens", typed("integer")},
            {"completion_tokens", typed("integer")},
            {"total_tokens", typed("integer")},
            {"prompt_tokens_details",
             {{"type", "object"},
              {"properties",
               {{"cached_tokens", typed("integer")}, {"image_tokens", typed("integer")}}}}}}},
          {"required", {"prompt_tokens", "completion_tokens", "total_tokens"}}};
}

Json choice_schema(const char* content, Json content_schema) {
  return {{"type", "object"},
          {"properties",
           {{"index", typed("integer")},
            {content, std::move(content_schema)},
            {"logprobs", {{"type", {"object", "null"}}}},
            {"finish_reason",
             {{"type", {"string", "null"}},
              {"enum", {"stop", "length", "tool_calls", "abort", "error", nullptr}}}},
            {"stop_reason", {{"type", {"string", "integer", "null"}}}}}},
          {"required", {"index", content, "finish_reason"}}};
}

Json answer_schema(Json choice) {
  return list_answer_schema("choices", std::move(choice), usage_schema(),
                            {"id", "object", "created", "model", "choices", "usage"});
}

}  // namespace

Json list_answer_schema(const char* list, Json item, Json usage, Json required) {
  return {{"type", "object"},
          {"properties",
           {{"id", typed("string")},
            {"object", typed("string")},
            {"created", typed("integer")},
            {"model", typed("string")},
            {"system_fingerprint", typed("string")},
            {list, {{"type", "array"}, {"items", std::move(item)}}},
            {"usage", std::move(usage)}}},
          {"required", std::move(required)}};
}

Json completion_schema() { return answer_schema(choice_schema("text", typed("string"))); }

Json chat_completion_schema() {
  const Json message = {{"type", "object"},
                        {"properties",
                         {{"role", typed("string")},
                          {"content", {{"type", {"string", "null"}}}},
                          {"reasoning", typed("string")},
                          {"tool_calls", {{"type", "array"}, {"items", typed("object")}}}}},
                        {"required", {"role", "content"}}};
  return answer_schema(choice_schema("message", message));
}

Json generation_operation(const char* summary, Json body_schema, Json answer_schema) {
  Json doc = json_operation(summary, std::move(body_schema), std::move(answer_schema));
  doc["responses"]["200"]["content"]["text/event-stream"] = {{"schema", typed("string")}};
  return doc;
}

}  // namespace octavo::api
