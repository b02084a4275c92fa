#include "server/http/openapi.h"

#include <set>

#include "api/api_error.h"

namespace octavo::server {

using namespace api;

namespace {

Json error_schema() {
  const Json error = {{"type", "object"},
                      {"properties",
                       {{"message", {{"type", "string"}}},
                        {"type", {{"type", "string"}}},
                        {"param", {{"type", {"string", "null"}}}},
                        {"code", {{"type", "integer"}}}}},
                      {"required", {"message", "type", "param", "code"}}};
  return {{"type", "object"}, {"properties", {{"error", error}}}, {"required", {"error"}}};
}

Json ollama_error_schema() {
  return {{"type", "object"},
          {"properties", {{"error", {{"type", "string"}}}}},
          {"required", Json::array({"error"})}};
}

Json error_answer(int status, ErrorStyle style) {
  const char* const schema = style == ErrorStyle::kOllama ? "#/components/schemas/OllamaError"
                                                          : "#/components/schemas/Error";
  return {{"description", error_type(status)},
          {"content", {{"application/json", {{"schema", {{"$ref", schema}}}}}}}};
}

Json documented(const DocumentedPath& endpoint) {
  Json doc = endpoint.doc;
  Json& responses = doc["responses"];
  std::set<int> statuses = {408, 431, 503};
  if (endpoint.needs_key) statuses.insert(401);
  if (doc.contains("requestBody")) statuses.insert({400, 404, 413, 415, 429, 500});
  if (doc.contains("parameters")) statuses.insert(404);
  for (const int status : statuses)
    responses[std::to_string(status)] = error_answer(status, error_style_of(endpoint.path));
  if (endpoint.needs_key) doc["security"] = Json::array({{{"key", Json::array()}}});
  return doc;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return text;
}

}  // namespace

Json openapi_document(const std::vector<DocumentedPath>& endpoints) {
  Json paths = Json::object();
  for (const DocumentedPath& endpoint : endpoints) {
    if (endpoint.doc.is_null()) continue;
    paths[endpoint.path][lower(endpoint.method)] = documented(endpoint);
  }
  return {{"openapi", "3.1.0"},
          {"info",
           {{"title", "Octavo"},
            {"version", "1"},
            {"description",
             "OpenAI's API with vLLM's additions. A field that would change the answer and is not "
             "supported is refused with a 400 that names it."}}},
          {"paths", std::move(paths)},
          {"components",
           {{"schemas", {{"Error", error_schema()}, {"OllamaError", ollama_error_schema()}}},
            {"securitySchemes", {{"key", {{"type", "http"}, {"scheme", "bearer"}}}}}}}};
}

Endpoint openapi_endpoint(const std::vector<Endpoint>& endpoints) {
  const std::string text = dump(openapi_document(endpoints));
  return simple_endpoint(
      "GET", "/openapi.json",
      [text](ServerContext&, const HttpRequest&) { return HttpResponse{.body = text}; }, nullptr);
}

}  // namespace octavo::server
