// api_keys.h - who may ask. Immutable.
#pragma once

#include <string>
#include <vector>

#include "server/http.h"

namespace octavo::server {

// Tells callers apart by the key they sent, without keeping it.
std::string caller_digest(const HttpRequest& request);

class ApiKeys {
 public:
  // No keys: everybody may ask.
  explicit ApiKeys(const std::vector<std::string>& keys);

  // By "Authorization: Bearer KEY" or "x-api-key: KEY". Takes as long for a wrong key as for a
  // right one.
  bool allow(const HttpRequest& request) const;

 private:
  std::vector<std::string> digests_;
};

}  // namespace octavo::server
