// openapi.h - the document at /openapi.json, generated from the endpoints.
#pragma once

#include <vector>

#include "server/http/endpoint.h"

namespace octavo::server {

// OpenAPI 3.1.
api::Json openapi_document(const std::vector<Endpoint>& endpoints);

Endpoint openapi_endpoint(const std::vector<Endpoint>& endpoints);

}  // namespace octavo::server
