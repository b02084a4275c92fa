// api_keys.h - authentication by API key. I/O thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "server/admission.h"
#include "server/api_key_file.h"
#include "server/http/http.h"

namespace octavo::server {

// A key that the server accepts, without the key itself. Its open requests share it, so it can
// outlive its entry in ApiKeys.
struct AcceptedKey {
  std::string owner;   // the digest of the key
  std::string name;    // empty: none
  Allowance requests;  // open ones
};

class ApiKeys {
 public:
  // No keys: every request is allowed. `max_requests`: open ones per key; 0: any number. Throws
  // SetupError if a key is blank.
  explicit ApiKeys(const std::vector<ApiKey>& keys, int64_t max_requests = 0);
  // From now on only these are accepted. Those that stay keep their count of open requests. Changes
  // nothing if it throws SetupError.
  void replace(const std::vector<ApiKey>& keys);

  // Checks "Authorization: Bearer KEY" or "x-api-key: KEY" in constant time. Null: not accepted.
  std::shared_ptr<AcceptedKey> find(const HttpRequest& request) const;
  bool allow(const HttpRequest& request) const { return keys_.empty() || find(request) != nullptr; }
  // Null if no key has this owner.
  std::shared_ptr<AcceptedKey> find_owner(std::string_view owner) const;
  // Of all keys; includes the empty name if a key has none.
  std::set<std::string> names() const;
  size_t size() const { return keys_.size(); }

 private:
  std::vector<std::shared_ptr<AcceptedKey>> keys_;
  int64_t max_requests_;
};

// Who asks, as far as a key tells: the key's digest, or nothing without one.
std::string owner_of(const HttpRequest& request);
std::string owner_of_key(std::string_view key);

}  // namespace octavo::server
