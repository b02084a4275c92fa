// tenant.h - what separates the requests of different API keys. Immutable.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cache/cache_namespace.h"
#include "server/http/http.h"

namespace octavo::server {

struct Tenant {
  std::string owner = {};  // the key's digest; empty without API keys
  CacheNamespace cache_namespace = {};
};

// What --state-dir stores instead of an owner.
std::string stored_owner(const std::string& owner);

class Tenants {
 public:
  // With several different keys, each has its own cache namespace unless `share_prefix_cache`. With
  // fewer, all requests use the common one. `behind_front`: the front process says in a header which
  // tenant a request is from; clients of other servers cannot.
  Tenants(const std::vector<std::string>& api_keys, bool share_prefix_cache,
          bool behind_front = false);

  // The request must have been allowed (ApiKeys).
  Tenant of(const HttpRequest& request) const;
  // Nothing if no API key has this owner any more.
  std::optional<std::string> owner_of_stored(const std::string& stored) const;

 private:
  std::vector<std::string> owners_;  // none without keys
  bool separate_caches_;
  bool behind_front_;
};

}  // namespace octavo::server
