// make_batch_runner.h - a runner that sends the lines of batches through the routes of its server.
#pragma once

#include <memory>

#include "server/batches/batch_runner.h"
#include "server/http/router.h"
#include "server/http_context.h"

namespace octavo::server {

// Null without a folder for state. `context`, which gets to know the runner, and `router` must
// outlive it.
std::unique_ptr<BatchRunner> make_batch_runner(HttpContext& context, const Router& router);

}  // namespace octavo::server
