// server_options.h - options of the server, named after the flags of `octavo serve`.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/openai/response_store.h"
#include "api/request_memory.h"
#include "prefix_peer/peer_secret.h"
#include "server/api_key_file.h"
#include "server/text_workers.h"
#include "server/tracing/request_span.h"

namespace octavo::server {

// HttpLimits::body_bytes of a server whose model takes images.
inline constexpr size_t kImageBodyBytes = 32u << 20;

// Time and memory limits per client.
struct HttpLimits {
  size_t header_bytes = 64u << 10;                        // more: 431
  size_t body_bytes = 8u << 20;                           // more: 413
  std::chrono::milliseconds header_timeout{10'000};       // for all headers of a request; then 408
  std::chrono::milliseconds body_timeout{60'000};         // between two reads of a body; then 408
  std::chrono::milliseconds body_total_timeout{300'000};  // for a whole body; then 408
  std::chrono::milliseconds write_timeout{60'000};        // for a client to read what was sent
  std::chrono::milliseconds idle_timeout{75'000};         // between two requests on a connection
};

struct CorsOptions {
  std::vector<std::string> allowed_origins = {};  // "*": any; empty: no CORS headers
};

// State that survives a restart: files, batches and stored responses.
struct StateOptions {
  std::string folder = {};               // empty: nothing is stored
  int64_t max_bytes = int64_t{4} << 30;  // of the database; more: 413
  int64_t max_file_bytes = 200 << 20;    // of an uploaded file; more: 413
  int max_files = 10'000;                // more: 413
  int max_batches = 10'000;              // more: 413
  int max_open_batches = 100;            // more: 429
  int batch_concurrency = 32;            // lines of batches that run at once
  // Waits so long for another process to leave the folder.
  std::chrono::milliseconds lock_timeout{0};
};

inline constexpr int kMaxConnections = 4096;

struct ServerOptions {
  std::string host = "127.0.0.1";
  uint16_t port = 8000;  // 0: a free one
  std::string uds = {};  // a Unix socket instead of host and port
  // A second address with few routes that need no key (internal_endpoints()).
  std::optional<uint16_t> internal_port = {};  // 0: a free one
  std::string internal_host = "127.0.0.1";
  // Shares pages of the disk tier there with replicas that know it; null: with none.
  std::shared_ptr<const PeerSecret> peer_secret = nullptr;
  std::vector<ApiKey> api_keys = {};  // empty: no key is asked for
  // On SIGHUP: the keys to use from then on. Throws SetupError. Null: SIGHUP is not handled.
  std::function<std::vector<ApiKey>()> reload_api_keys = nullptr;
  int max_requests_per_key = 0;     // open at once; more: 429. 0: no limit
  bool share_prefix_cache = false;  // between API keys
  // Names that Host may hold, besides addresses, localhost and `host`; "*": any. Checked only
  // without API keys.
  std::vector<std::string> allowed_hosts = {};
  CorsOptions cors = {};
  HttpLimits limits = {};
  int max_connections = kMaxConnections;  // more: 503
  int max_open_requests = 512;            // generating or waiting; more: 429
  int max_open_sequences = 4096;          // prompts x n besides the first; more: 429
  // Of the bodies of open requests; more: 429.
  int64_t max_open_bytes = api::RequestMemory{}.body_bytes;
  std::chrono::milliseconds sse_keepalive{20'000};  // 0: none
  std::chrono::milliseconds drain_timeout{30'000};
  // After SIGTERM, requests are still accepted for so long while health checks fail.
  std::chrono::milliseconds drain_delay{0};
  std::chrono::milliseconds stalled_after{8'000};  // without progress: /livez fails
  api::ResponseStoreLimits stored_responses = {};
  StateOptions state = {};
  TextWorkerOptions text_workers = {};
  // For JSON, template, tokenizing and grammar of a request, waiting for a worker included; then
  // 503.
  std::chrono::milliseconds preparation_timeout{30'000};
  std::chrono::milliseconds stuck_after{10'000};  // on one job of a text worker: /readyz fails
  bool access_log = true;
  // A child of a front process, which is the only client. Streams carry what the front needs to
  // continue them on another child, and the front says in a header which API key a request has.
  bool behind_front = false;
  bool allow_lora_updates = false;  // /v1/load_lora_adapter and /v1/unload_lora_adapter
  // Gets a span of each request that reached the engine; null: none is made.
  std::shared_ptr<SpanSink> spans = nullptr;
  // For tests: called on the text worker with each JSON body, before it is parsed.
  std::function<void(std::string_view)> on_preparation = nullptr;
  // The answer of GET /kv_event_sources, in JSON.
  std::string kv_event_sources = "{}";
  std::string version = "0";

  // Of a form with one file.
  size_t most_upload_bytes() const {
    constexpr size_t kFormBytes = 64u << 10;
    return static_cast<size_t>(state.max_file_bytes) + kFormBytes;
  }
};

}  // namespace octavo::server
