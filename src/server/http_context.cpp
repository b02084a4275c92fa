#include "server/http_context.h"

#include "server/batches/batch_runner.h"
#include "server/persistent_state.h"

namespace octavo::server {

HttpContext::HttpContext(boost::asio::io_context& io_context, const ServerOptions& server_options)
    : io(io_context),
      options(server_options),
      bodies(server_options.max_open_bytes),
      tenants(server_options.api_keys, server_options.share_prefix_cache,
              server_options.behind_front),
      state(server_options.state.folder.empty()
                ? nullptr
                : std::make_unique<PersistentState>(server_options.state, tenants)) {}

HttpContext::~HttpContext() = default;

// Lines of batches run again after a restart.
void HttpContext::drain_began() {
  if (batches != nullptr) batches->stop();
}

}  // namespace octavo::server
