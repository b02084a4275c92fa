#include "server/endpoints/endpoints.h"

#include <iterator>
#include <utility>

#include "server/http/openapi.h"

namespace octavo::server {

std::vector<Endpoint> all_endpoints(bool change_adapters) {
  std::vector<Endpoint> all;
  if (change_adapters) all = adapter_endpoints();
  for (auto part :
       {completion_endpoints(), chat_endpoints(), message_endpoints(), response_endpoints(),
        embedding_endpoints(), ollama_endpoints(), ollama_model_endpoints(), file_endpoints(),
        batch_endpoints(), model_endpoints(), token_endpoints(), health_endpoints(),
        status_endpoints(), render_endpoints(), replica_endpoints(), page_endpoints()})
    all.insert(all.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
  all.push_back(openapi_endpoint(all));
  return all;
}

std::vector<Endpoint> internal_endpoints() {
  std::vector<Endpoint> all = health_endpoints();
  for (Endpoint& endpoint : status_endpoints())
    if (endpoint.path == "/metrics") all.push_back(std::move(endpoint));
  for (Endpoint& endpoint : render_endpoints()) all.push_back(std::move(endpoint));
  return all;
}

}  // namespace octavo::server
