#include "server/batches/make_batch_runner.h"

#include <algorithm>

namespace octavo::server {

std::unique_ptr<BatchRunner> make_batch_runner(HttpContext& context, const Router& router) {
  if (!context.state) return nullptr;
  const ServerOptions& options = context.options;
  // Lines of batches take places of max_open_requests, of which half remain for other requests.
  const int most = std::max(1, options.max_open_requests / 2);
  auto runner = std::make_unique<BatchRunner>(
      context.io, *context.state, context.tenants, context.bodies,
      [&context, &router](Exchange& exchange) { return router.dispatch(context, exchange); },
      BatchRunnerOptions{.concurrency = std::min(options.state.batch_concurrency, most),
                         .line_bytes = options.limits.body_bytes});
  context.batches = runner.get();
  return runner;
}

}  // namespace octavo::server
