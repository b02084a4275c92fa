// ollama_routes.h - what Ollama's API tells about the models of a front process. I/O thread only. No
// MLX.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "front/model_pool.h"
#include "server/http/route.h"

namespace octavo::front {

// GET /api/tags, /api/ps and /api/version. `pool` must outlive the routes. `version`: of octavo.
std::vector<server::Route> ollama_routes(ModelPool& pool, const std::string& version);

// Bodies of /api/tags and /api/ps.
api::Json ollama_tags_of(const std::vector<ModelStatus>& statuses);
api::Json ollama_ps_of(const std::vector<ModelStatus>& statuses);

}  // namespace octavo::front
