// api_keys.h - authentication by API key. Immutable.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/http/http.h"

namespace octavo::server {

class ApiKeys {
 public:
  // No keys: every request is allowed. Throws SetupError if a key is blank.
  explicit ApiKeys(const std::vector<std::string>& keys);

  // Checks "Authorization: Bearer KEY" or "x-api-key: KEY" in constant time.
  bool allow(const HttpRequest& request) const;

 private:
  std::vector<std::string> digests_;
};

// Empty, or nothing but white space: a request without a key would match it.
bool is_blank_key(std::string_view key);

// Who asks, as far as a key tells: the key's digest, or nothing without one.
std::string owner_of(const HttpRequest& request);
std::string owner_of_key(std::string_view key);

}  // namespace octavo::server
