// GET /v1/models and /v1/models/{model}
#include "api/fields/field_kinds.h"
#include "api/generation_request.h"
#include "server/endpoints/endpoints.h"
#include "server/server_context.h"

namespace octavo::server {

using namespace api;

namespace {

Json card(const ServedModel& model, const std::string& name) {
  return {{"id", name},
          {"object", "model"},
          {"created", model.created},
          {"owned_by", "octavo"},
          {"root", model.root},
          {"parent", nullptr},
          {"max_model_len", model.max_model_len}};
}

Json card_schema() {
  return {{"type", "object"},
          {"properties",
           {{"id", {{"type", "string"}}},
            {"object", {{"type", "string"}}},
            {"created", {{"type", "integer"}}},
            {"owned_by", {{"type", "string"}}},
            {"root", {{"type", "string"}}},
            {"parent", {{"type", {"string", "null"}}}},
            {"max_model_len", {{"type", "integer"}}}}},
          {"required", {"id", "object", "created", "owned_by", "root", "max_model_len"}}};
}

HttpResponse list_models(ServerContext& context, const HttpRequest&) {
  Json data = Json::array();
  for (const std::string& name : context.model.names) data.push_back(card(context.model, name));
  return json_response({{"object", "list"}, {"data", std::move(data)}});
}

HttpResponse one_model(ServerContext& context, const HttpRequest& request) {
  const std::string name = request.path.substr(std::string_view("/v1/models/").size());
  check_model_name(name, context.model);
  return json_response(card(context.model, name));
}

}  // namespace

std::vector<Endpoint> model_endpoints() {
  const Json list = {
      {"type", "object"},
      {"properties",
       {{"object", {{"type", "string"}}}, {"data", {{"type", "array"}, {"items", card_schema()}}}}},
      {"required", {"object", "data"}}};
  Json one = operation("Get one model", card_schema());
  one["parameters"] = Json::array({{{"name", "model"},
                                    {"in", "path"},
                                    {"required", true},
                                    {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  return {simple_endpoint("GET", "/v1/models", list_models, operation("List models", list)),
          simple_endpoint("GET", "/v1/models/{model}", one_model, std::move(one))};
}

}  // namespace octavo::server
