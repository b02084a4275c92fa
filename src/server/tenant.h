// tenant.h - what separates the requests of different API keys. I/O thread only, except stored().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache_namespace.h"
#include "server/api_key_file.h"
#include "server/http/http.h"

namespace octavo::server {

struct Tenant {
  std::string owner = {};  // the key's digest; empty without API keys
  CacheNamespace cache_namespace = {};
};

// What --state-dir stores instead of an owner, and what children of a front process know of it.
std::string stored_owner(const std::string& owner);

class Tenants {
 public:
  // With several different keys, each has its own cache namespace unless `share_prefix_cache`. With
  // fewer, all requests use the common one. `behind_front`: the front process says in a header which
  // tenant a request is from; clients of other servers cannot.
  Tenants(const std::vector<ApiKey>& api_keys, bool share_prefix_cache, bool behind_front = false);
  // The keys have changed. Those that stay keep their cache namespace. New ones have their own,
  // except a new key that is the only one.
  void replace(const std::vector<ApiKey>& api_keys);

  // The request must have been allowed (ApiKeys).
  Tenant of(const HttpRequest& request) const;
  // What --state-dir stores instead of the owner of a Tenant.
  std::string stored(const std::string& owner) const;
  // Nothing if no API key has this owner any more.
  std::optional<std::string> owner_of_stored(const std::string& stored) const;

 private:
  std::map<std::string, CacheNamespace> namespaces_ = {};  // by owner; none without keys
  bool share_prefix_cache_;
  bool behind_front_;
};

}  // namespace octavo::server
