// GET /v1/models and /v1/models/{model}
#include <algorithm>
#include <cmath>
#include <optional>

#include "api/fields/field_kinds.h"
#include "api/generation_request.h"
#include "api/model_modalities.h"
#include "base/error.h"
#include "server/endpoints/endpoints.h"
#include "server/server_context.h"

namespace octavo::server {

using namespace api;

namespace {

// The sampling defaults that are set; for others, OpenAI's defaults hold.
Json default_sampling_params(const SamplingDefaults& defaults) {
  Json params = Json::object();
  const auto add = [&](const char* name, const std::optional<float>& value) {
    // As a double, a float has more digits than it means: 0.7 would be 0.699999988.
    if (value) params[name] = std::round(static_cast<double>(*value) * 1e6) / 1e6;
  };
  add("temperature", defaults.temperature);
  add("top_p", defaults.top_p);
  add("min_p", defaults.min_p);
  add("repetition_penalty", defaults.repetition_penalty);
  if (defaults.top_k) params["top_k"] = *defaults.top_k;
  return params;
}

Json card(const ServedModel& model, const std::string& name) {
  Json json = {{"id", name},
               {"object", "model"},
               {"created", model.created},
               {"owned_by", "octavo"},
               {"root", model.root},
               {"parent", nullptr},
               {"max_model_len", model.max_model_len},
               {"default_sampling_params", default_sampling_params(model.defaults)}};
  if (model.images) json["architecture"] = image_architecture();
  return json;
}

// The fields are vLLM's.
Json adapter_card(const ServedModel& model, const LoadedAdapter& loaded) {
  const AdapterSource& source = loaded.source;
  Json json = card(model, source.name);
  json["created"] = loaded.created;
  json["root"] = source.path;
  json["parent"] = source.base_model_name.empty() ? model.name() : source.base_model_name;
  return json;
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
            {"max_model_len", {{"type", "integer"}}},
            {"default_sampling_params", {{"type", "object"}}},
            {"architecture", {{"type", "object"}}}}},
          {"required", {"id", "object", "created", "owned_by", "root", "max_model_len"}}};
}

HttpResponse list_models(ServerContext& context, const HttpRequest&) {
  Json data = Json::array();
  for (const std::string& name : context.model.names) data.push_back(card(context.model, name));
  if (context.model.adapters) {
    for (const LoadedAdapter& loaded : context.model.adapters->list())
      data.push_back(adapter_card(context.model, loaded));
  }
  return json_response({{"object", "list"}, {"data", std::move(data)}});
}

HttpResponse one_model(ServerContext& context, const HttpRequest& request) {
  const std::string name = request.path.substr(std::string_view("/v1/models/").size());
  const auto adapter = adapter_named(name, context.model);
  if (!adapter) return json_response(card(context.model, name));
  const auto all = context.model.adapters->list();
  const auto found = std::ranges::find(all, adapter, &LoadedAdapter::adapter);
  if (found == all.end()) throw RequestError(404, "model", "was unloaded just now");
  return json_response(adapter_card(context.model, *found));
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
