// openapi.h - the document at /openapi.json, generated from the endpoints.
#pragma once

#include <vector>

#include "server/http/endpoint.h"

namespace octavo::server {

// What the document says about an endpoint or a route.
struct DocumentedPath {
  const std::string& method;
  const std::string& path;
  bool needs_key;
  const api::Json& doc;
};

// OpenAPI 3.1. `endpoints`: of type Endpoint or Route.
api::Json openapi_document(const std::vector<DocumentedPath>& paths);
template <typename Documented>
api::Json openapi_document(const std::vector<Documented>& endpoints) {
  std::vector<DocumentedPath> paths;
  for (const Documented& endpoint : endpoints)
    paths.push_back({endpoint.method, endpoint.path, endpoint.needs_key, endpoint.doc});
  return openapi_document(paths);
}

Endpoint openapi_endpoint(const std::vector<Endpoint>& endpoints);

}  // namespace octavo::server
