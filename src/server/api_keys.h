// api_keys.h - authentication by API key. Immutable.
#pragma once

#include <string>
#include <vector>

#include "server/http/http.h"

namespace octavo::server {

class ApiKeys {
 public:
  // Without keys, every request is allowed.
  explicit ApiKeys(const std::vector<std::string>& keys);

  // Checks "Authorization: Bearer KEY" or "x-api-key: KEY" in constant time.
  bool allow(const HttpRequest& request) const;

 private:
  std::vector<std::string> digests_;
};

// Identifies the caller: the digest of its key, or empty without one.
std::string owner_of(const HttpRequest& request);

}  // namespace octavo::server
