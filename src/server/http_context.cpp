#include "server/http_context.h"

#include "base/log.h"
#include "server/batches/batch_runner.h"
#include "server/persistent_state.h"

namespace octavo::server {

HttpContext::HttpContext(boost::asio::io_context& io_context, const ServerOptions& server_options)
    : io(io_context),
      options(server_options),
      bodies(server_options.max_open_bytes),
      keys(server_options.api_keys, server_options.max_requests_per_key),
      tenants(server_options.api_keys, server_options.share_prefix_cache,
              server_options.behind_front),
      state(server_options.state.folder.empty()
                ? nullptr
                : std::make_unique<PersistentState>(server_options.state, tenants)) {}

HttpContext::~HttpContext() = default;

void HttpContext::reload_keys() {
  try {
    const std::vector<ApiKey> next = options.reload_api_keys();
    const size_t before = keys.size();
    keys.replace(next);
    tenants.replace(next);
    http_metrics().set_key_names(keys.names());
    if (batches != nullptr) batches->keys_changed();
    spdlog::info("read the API keys again: {} before, {} now", before, keys.size());
  } catch (const std::exception& error) {
    spdlog::error("the API keys were not changed: {}", error.what());
  }
}

// Lines of batches run again after a restart.
void HttpContext::drain_began() {
  if (batches != nullptr) batches->stop();
}

}  // namespace octavo::server
