// endpoints.h - all routes; each file has one or a few related ones.
#pragma once

#include <vector>

#include "server/http/endpoint.h"

namespace octavo::server {

std::vector<Endpoint> completion_endpoints();         // completions.cpp
std::vector<Endpoint> chat_endpoints();               // chat.cpp
std::vector<Endpoint> message_endpoints();            // messages.cpp
std::vector<Endpoint> response_endpoints();           // responses.cpp
std::vector<Endpoint> embedding_endpoints();          // embeddings.cpp
std::vector<Endpoint> rerank_endpoints();             // rerank.cpp
std::vector<Endpoint> ollama_endpoints();             // ollama.cpp
std::vector<Endpoint> ollama_model_endpoints();       // ollama_models.cpp
std::vector<HttpEndpoint> ollama_change_endpoints();  // ollama_models.cpp
std::vector<HttpEndpoint> file_endpoints();           // files.cpp
std::vector<HttpEndpoint> batch_endpoints();          // batches.cpp
std::vector<Endpoint> model_endpoints();              // models.cpp
std::vector<Endpoint> adapter_endpoints();            // adapters.cpp
std::vector<Endpoint> token_endpoints();              // tokenize.cpp
std::vector<Endpoint> health_endpoints();             // health.cpp
std::vector<Endpoint> status_endpoints();             // status.cpp
std::vector<Endpoint> render_endpoints();             // render.cpp
std::vector<Endpoint> replica_endpoints();            // replica.cpp
std::vector<Endpoint> prefix_page_endpoints();        // prefix_pages.cpp
std::vector<Endpoint> page_endpoints();               // page.cpp

// A file of the playground, or 404.
HttpResponse page_file(const HttpRequest& request);

// All of them, and /openapi.json; those that change adapters only if asked for.
std::vector<Endpoint> all_endpoints(bool change_adapters = false);

// What the internal listener offers without a key: health, metrics and rendering; and pages of the
// prefix cache if they are shared with other replicas.
std::vector<Endpoint> internal_endpoints(bool share_pages);

}  // namespace octavo::server
