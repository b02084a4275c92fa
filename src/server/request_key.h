// request_key.h - what an API key means for a request besides access: its name, and the limit of
// --max-requests-per-key. I/O thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/http_context.h"

namespace octavo::server {

// Counts an open request of a key while it exists.
struct KeyLease {
  std::shared_ptr<AcceptedKey> key = nullptr;  // the lease refers to it
  Allowance::Lease lease = {};
};

// Throws RequestError(429) if the key has as many open requests as the limit allows. Lines of batches
// do not count: --batch-concurrency limits them.
KeyLease lease_of_key(HttpContext& context, const HttpRequest& request);

// The name of the key of a request, or of the batch it is a line of; empty if the key has none.
// Nothing if the server has no keys. A child of a front process gets the name from it.
std::optional<std::string> key_name_of(const HttpContext& context, const HttpRequest& request);

}  // namespace octavo::server
