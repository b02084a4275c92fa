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
        status_endpoints(), page_endpoints()})
    all.insert(all.end(), std::make_move_iterator(part.begin()),
               std::make_move_iterator(part.end()));
  all.push_back(openapi_endpoint(all));
  return all;
}

}  // namespace octavo::server
