/* octavo_media.h - downloads files from allowed hosts of the public internet, implemented in Rust.
 *
 * The rules of octavo_rust.h apply. Blocks; any thread. */
#pragma once

#include <octavo_rust.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct octavo_media octavo_media;

/* `options` is a JSON object: hosts (an array of names), most_bytes (of a file), timeout_ms (of a whole
 * download). OCTAVO_RUST_REFUSED: one of the hosts is not a host name. */
octavo_rust_status octavo_media_new(const char* options, size_t options_size, octavo_media** out,
                                    octavo_text* error);
octavo_rust_status octavo_media_free(octavo_media* handle);

/* Fetches the file of an https URL. Its host must be one of `hosts`, on port 443, and all of the host's
 * addresses must be global. The name is resolved once. No proxy and no redirect is followed. `error` is a
 * reason, to be read after the URL. Setting `stop` (may be null; an atomic flag) from another thread ends
 * the call soon, with OCTAVO_RUST_STOPPED. OCTAVO_RUST_LIMIT: too many downloads run. `out` is any
 * bytes. */
octavo_rust_status octavo_media_fetch(const octavo_media* handle, const char* url, size_t url_size,
                                      const bool* stop, octavo_text* out, octavo_text* error);

#ifdef __cplusplus
}
#endif
