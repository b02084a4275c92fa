// endpoints.h - all routes; each file has one or a few related ones.
#pragma once

#include <vector>

#include "server/http/endpoint.h"

namespace octavo::server {

std::vector<Endpoint> completion_endpoints();    // completions.cpp
std::vector<Endpoint> chat_endpoints();          // chat.cpp
std::vector<Endpoint> message_endpoints();       // messages.cpp
std::vector<Endpoint> response_endpoints();      // responses.cpp
std::vector<Endpoint> embedding_endpoints();     // embeddings.cpp
std::vector<Endpoint> ollama_endpoints();        // ollama.cpp
std::vector<Endpoint> ollama_model_endpoints();  // ollama_models.cpp
std::vector<Endpoint> file_endpoints();          // files.cpp
std::vector<Endpoint> batch_endpoints();         // batches.cpp
std::vector<Endpoint> model_endpoints();         // models.cpp
std::vector<Endpoint> adapter_endpoints();       // adapters.cpp
std::vector<Endpoint> token_endpoints();         // tokenize.cpp
std::vector<Endpoint> health_endpoints();        // health.cpp
std::vector<Endpoint> status_endpoints();        // status.cpp
std::vector<Endpoint> page_endpoints();          // page.cpp

// A file of the playground, or 404.
HttpResponse page_file(const HttpRequest& request);

// All of them, and /openapi.json; those that change adapters only if asked for.
std::vector<Endpoint> all_endpoints(bool change_adapters = false);

}  // namespace octavo::server
