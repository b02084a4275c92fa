// POST /v1/responses; GET and DELETE /v1/responses/{id}: OpenAI's Responses API.
#include <chrono>

#include "api/openai/response_schema.h"
#include "api/openai/responses_format.h"
#include "api/openai/responses_request.h"
#include "api/request_id.h"
#include "base/error.h"
#include "server/endpoints/endpoints.h"
#include "server/json_request.h"
#include "server/respond.h"

namespace octavo::server {

using namespace api;

namespace {

constexpr std::string_view kPrefix = "/v1/responses/";
constexpr std::string_view kInputItems = "/input_items";

ResponseShelf shelf_of(ServerContext& context, const HttpRequest& request) {
  return {.store = context.responses, .owner = context.tenants.of(request).owner};
}

// Clients may choose ids, but must not replace a stored response.
std::string id_for(const ResponsesJob& job, const ResponseShelf& shelf, const std::string& id) {
  // A resumed answer keeps its id. If a response of that id is stored, the store keeps the older.
  if (job.resumes) return id;
  const bool taken = "resp_" + id == job.previous.id ||
                     (job.store && shelf.store.find(shelf.owner, "resp_" + id) != nullptr);
  return taken ? fresh_request_id() : id;
}

Awaitable<void> create_response(ServerContext& context, Exchange& exchange) {
  const auto arrival = std::chrono::steady_clock::now();
  const Place place(context, exchange.request());
  const ResponseShelf shelf = shelf_of(context, exchange.request());
  const auto prepare = [&model = context.model, shelf](const Json& body,
                                                       const Preparation& preparation) {
    return prepare_responses(body, model, shelf, preparation);
  };
  ResponsesJob job = co_await with_json_body(context, exchange, prepare);
  job.id = id_for(job, shelf, job.id.empty() ? exchange.request().id : job.id);
  const auto keep = [&](const Json& response) {
    return shelf.store.put(
        shelf.owner, response["id"].get_ref<const std::string&>(),
        {.previous = job.previous, .object = dump(response), .input = job.input});
  };
  const auto held = context.bodies.try_lend(job.head_bytes);
  if (!held)
    throw RequestError(429, "", "open request bodies exceed the memory limit; try again later");
  ResponsesFormat format(context.model, job, keep);
  co_await respond(context, exchange, job, format, arrival);
}

Awaitable<void> count_input_tokens(ServerContext& context, Exchange& exchange) {
  const Place place(context, exchange.request());
  const ResponseShelf shelf = shelf_of(context, exchange.request());
  const auto count = [&model = context.model, shelf](const Json& body,
                                                     const Preparation& preparation) {
    return count_response_tokens(body, model, shelf, preparation);
  };
  const Json counted = co_await with_json_body(context, exchange, count);
  co_await exchange.send(json_response(counted));
}

// The list of input items; each gets an id and a type.
Json listed_items(const StoredResponse& response, const std::string& id) {
  Json items = Json::parse(response.input);
  for (size_t i = 0; i < items.size(); ++i) {
    Json& item = items[i];
    if (!item.contains("id")) item["id"] = "item_" + id + "_" + std::to_string(i);
    if (!item.contains("type")) item["type"] = "message";
    if (item["type"] != "message" || !item["content"].is_string()) continue;
    const bool ours = item.value("role", "") == "assistant";
    Json part = {{"type", ours ? "output_text" : "input_text"}, {"text", item["content"]}};
    if (ours) part["annotations"] = Json::array();
    item["content"] = Json::array({part});
  }
  const auto id_of = [](const Json& item) { return item["id"]; };
  return {{"object", "list"},
          {"first_id", id_of(items.front())},
          {"last_id", id_of(items.back())},
          {"has_more", false},
          {"data", std::move(items)}};
}

Awaitable<void> get_response(ServerContext& context, Exchange& exchange) {
  const HttpRequest& request = exchange.request();
  std::string id = request.path.substr(kPrefix.size());
  const bool items = id.ends_with(kInputItems);
  if (items) id.resize(id.size() - kInputItems.size());
  const auto found = shelf_of(context, request).get(id, "");
  HttpResponse response;
  if (items) {  // may be megabytes to parse
    const Place place(context, exchange.request());
    const auto list = [found, id](const Preparation&) { return dump(listed_items(*found, id)); };
    response.body = co_await context.prepare(exchange, list);
  } else {
    response.body = found->object;
  }
  co_await exchange.send(std::move(response));
}

HttpResponse delete_response(ServerContext& context, const HttpRequest& request) {
  const std::string id = request.path.substr(kPrefix.size());
  const ResponseShelf shelf = shelf_of(context, request);
  shelf.get(id, "");
  shelf.store.erase(shelf.owner, id);
  return json_response({{"id", id}, {"object", "response"}, {"deleted", true}});
}

// Only background responses can be cancelled, and those are not supported.
HttpResponse cancel_response(ServerContext& context, const HttpRequest& request) {
  constexpr std::string_view kCancel = "/cancel";
  std::string id = request.path.substr(kPrefix.size());
  if (!id.ends_with(kCancel))
    throw RequestError(404, "", "unknown path; see /openapi.json for all routes");
  id.resize(id.size() - kCancel.size());
  shelf_of(context, request).get(id, "");
  throw RequestError(400, "", "only background responses can be cancelled");
}

Json with_id(Json doc) {
  doc["parameters"] = Json::array({{{"name", "response_id"},
                                    {"in", "path"},
                                    {"required", true},
                                    {"schema", {{"type", "string"}, {"minLength", 1}}}}});
  return doc;
}

}  // namespace

std::vector<Endpoint> response_endpoints() {
  const Json body = schema_of(responses_fields());
  const Json count = {{"type", "object"},
                      {"properties", {{"input_tokens", {{"type", "integer"}}}}},
                      {"required", Json::array({"input_tokens"})}};
  const Json deleted = {{"type", "object"},
                        {"properties", {{"deleted", {{"type", "boolean"}}}}},
                        {"required", Json::array({"deleted"})}};
  return {{.method = "POST",
           .path = "/v1/responses",
           .handler = create_response,
           .doc = generation_operation("Create a response", body, response_schema())},
          {.method = "POST",
           .path = "/v1/responses/input_tokens",
           .handler = count_input_tokens,
           .doc = json_operation("Count the input tokens of a response", body, count)},
          {.method = "GET",
           .path = "/v1/responses/{response_id}",
           .handler = get_response,
           .doc = with_id(operation("Get a stored response; with /input_items, its input",
                                    response_schema()))},
          simple_endpoint("DELETE", "/v1/responses/{response_id}", delete_response,
                          with_id(operation("Delete a stored response", deleted))),
          simple_endpoint("POST", "/v1/responses/{response_id}", cancel_response, nullptr)};
}

}  // namespace octavo::server
