/* octavo_hub.h - C functions for the hub's HTTP API and downloads, implemented in Rust.
 *
 * The rules of octavo_rust.h apply. A client may be used from several threads at once. Paths on the
 * hub begin with a slash. `http_status` is set to the hub's status code if a response was final;
 * otherwise it is unchanged. */
#pragma once

#include <octavo_rust.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_hub octavo_hub;

/* `options` is a JSON object: endpoint, token (empty: none; it is sent only to the endpoint's own
 * host and port), user_agent, timeout_ms, retry_ms (the delay before the first retry). Proxies and
 * SSL_CERT_FILE are read from the environment. */
octavo_rust_status octavo_hub_new(const char* options, size_t options_size, octavo_hub** out,
                                  octavo_text* error);
octavo_rust_status octavo_hub_free(octavo_hub* hub);

/* Called on the caller's thread before a request is retried. Must not throw. */
typedef struct octavo_hub_retry {
  void (*report)(void* context, const char* reason, size_t reason_size, uint64_t wait_ms);
  void* context;
} octavo_hub_retry;

/* Fetches the text at a path. Gives up after a few seconds if the hub cannot be reached. */
octavo_rust_status octavo_hub_get(const octavo_hub* hub, const char* path, size_t path_size,
                                  octavo_hub_retry on_retry, octavo_text* out,
                                  uint16_t* http_status, octavo_text* error);

/* Reports a download's progress. `waiting` is true while another process downloads a file of this
 * order. Return false to stop; the bytes received so far are kept. `retrying` gets the reason when a
 * request is retried. Must not throw. */
typedef struct octavo_hub_progress {
  bool (*report)(void* context, uint64_t done, uint64_t total, bool waiting);
  void (*retrying)(void* context, const char* reason, size_t reason_size);
  void* context;
} octavo_hub_progress;

/* `order` is a JSON object: connections, chunk_bytes, and files, each with name, url_path, size,
 * hash (SHA-256, or git's SHA-1 of a blob, in hex), blob (the path of the finished file) and lock;
 * the folders of both paths exist. A blob appears only when it is complete and matches its hash.
 * Calls `progress` on this thread. Returns OCTAVO_RUST_STOPPED if `progress` returned false. */
octavo_rust_status octavo_hub_download(const octavo_hub* hub, const char* order, size_t order_size,
                                       octavo_hub_progress progress, uint16_t* http_status,
                                       octavo_text* error);

#ifdef __cplusplus
}
#endif
