// front_routes.h - the routes of a front process: relayed ones, and its own for health, metrics and
// the playground. No MLX.
#pragma once

#include <vector>

#include "front/front_context.h"
#include "server/http/route.h"

namespace octavo::front {

// `context` must outlive the routes.
std::vector<server::Route> relayed_routes(FrontContext& context);
std::vector<server::Route> own_routes(FrontContext& context);

// `more` first, then the above, and /openapi.json of all.
std::vector<server::Route> front_routes(FrontContext& context, std::vector<server::Route> more);

}  // namespace octavo::front
