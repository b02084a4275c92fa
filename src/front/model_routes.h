// model_routes.h - the routes that list, load and unload models, in the forms of OpenAI and of
// llama.cpp's router. I/O thread only. No MLX.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "front/model_pool.h"
#include "server/http/route.h"

namespace octavo::front {

struct ModelRouteOptions {
  std::chrono::milliseconds sse_keepalive{20'000};  // 0: no comments
  std::function<bool()> is_draining = nullptr;      // ends streams of events; may be empty
};

// GET /v1/models, /v1/models/{model}, /models, /models/sse and /octavo/ps; POST /models/load and
// /models/unload. `pool` must outlive the routes.
std::vector<server::Route> model_routes(ModelPool& pool, ModelRouteOptions options);

// Of one model, as GET /v1/models has it.
api::Json model_card(const ModelStatus& status, int64_t created);
// As GET /models/sse sends it.
api::Json event_json(const ModelEvent& event, const std::string& source);

}  // namespace octavo::front
