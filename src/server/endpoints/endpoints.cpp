#include "server/endpoints/endpoints.h"

#include <iterator>
#include <utility>

#include "server/http/openapi.h"
#include "server/server_context.h"

namespace octavo::server {

namespace {

std::vector<Endpoint> of_a_model(std::vector<HttpEndpoint> endpoints) {
  std::vector<Endpoint> all;
  for (HttpEndpoint& each : endpoints) {
    all.push_back({.method = std::move(each.method),
                   .path = std::move(each.path),
                   .needs_key = each.needs_key,
                   .handler = std::move(each.handler),
                   .streams_body = each.streams_body,
                   .doc = std::move(each.doc)});
  }
  return all;
}

}  // namespace

std::vector<Endpoint> all_endpoints(bool change_adapters) {
  std::vector<Endpoint> all;
  if (change_adapters) all = adapter_endpoints();
  for (auto part :
       {completion_endpoints(), chat_endpoints(), message_endpoints(), response_endpoints(),
        embedding_endpoints(), rerank_endpoints(), ollama_endpoints(), ollama_model_endpoints(),
        of_a_model(ollama_change_endpoints()), of_a_model(file_endpoints()),
        of_a_model(batch_endpoints()), model_endpoints(), token_endpoints(), health_endpoints(),
        status_endpoints(), render_endpoints(), replica_endpoints(), page_endpoints()})
    all.insert(all.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
  all.push_back(openapi_endpoint(all));
  return all;
}

std::vector<Endpoint> internal_endpoints(bool share_pages) {
  std::vector<Endpoint> all = health_endpoints();
  for (Endpoint& endpoint : status_endpoints())
    if (endpoint.path == "/metrics" || endpoint.path == "/kv_event_sources")
      all.push_back(std::move(endpoint));
  for (Endpoint& endpoint : render_endpoints()) all.push_back(std::move(endpoint));
  if (!share_pages) return all;
  for (Endpoint& endpoint : prefix_page_endpoints()) all.push_back(std::move(endpoint));
  return all;
}

}  // namespace octavo::server
