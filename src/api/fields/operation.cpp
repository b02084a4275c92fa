#include "api/fields/operation.h"

#include <utility>

namespace octavo::api {

Json operation(const char* summary, Json answer_schema) {
  const Json content = {{"application/json", {{"schema", std::move(answer_schema)}}}};
  return {{"summary", summary},
          {"responses", {{"200", {{"description", "Success"}, {"content", content}}}}}};
}

Json json_operation(const char* summary, Json body_schema, Json answer_schema) {
  Json doc = operation(summary, std::move(answer_schema));
  doc["requestBody"] = {{"required", true},
                        {"content", {{"application/json", {{"schema", std::move(body_schema)}}}}}};
  return doc;
}

}  // namespace octavo::api
