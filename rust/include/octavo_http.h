/* octavo_http.h - an HTTP request to another server of the operator, implemented in Rust.
 *
 * The rules of octavo_rust.h apply. Blocks; any thread. */
#pragma once

#include <octavo_rust.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `request` is a JSON object: url (http or https), headers (an object of strings), timeout_ms (of the
 * whole exchange), most_bytes (of the answer), answer_header (a name). No proxy and no redirect is
 * followed. Any answer within the limits is OCTAVO_RUST_OK: `http_status` is its status, `out` its
 * body (any bytes), `header` the value of answer_header, or empty. */
octavo_rust_status octavo_http_post(const char* request, size_t request_size, const char* body,
                                    size_t body_size, uint16_t* http_status, octavo_text* out,
                                    octavo_text* header, octavo_text* error);

#ifdef __cplusplus
}
#endif
