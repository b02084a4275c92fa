#include "server/tenant.h"

#include <string_view>
#include <utility>

#include "base/sha256.h"
#include "server/api_keys.h"
#include "server/front_notes.h"

namespace octavo::server {
namespace {

// The label keeps the result, which is stored on disk, different from the digests that the server
// compares keys with.
Sha256Digest labelled_digest(std::string_view label, const std::string& owner) {
  std::vector<uint8_t> bytes(label.begin(), label.end());
  bytes.insert(bytes.end(), owner.begin(), owner.end());
  return sha256(bytes);
}

CacheNamespace namespace_of(const std::string& owner) {
  return labelled_digest("octavo prefix cache of ", owner);
}

}  // namespace

std::string stored_owner(const std::string& owner) {
  if (owner.empty()) return {};
  const Sha256Digest digest = labelled_digest("octavo state of ", owner);
  return {digest.begin(), digest.end()};
}

Tenants::Tenants(const std::vector<ApiKey>& api_keys, bool share_prefix_cache, bool behind_front)
    : share_prefix_cache_(share_prefix_cache), behind_front_(behind_front) {
  replace(api_keys);
}

void Tenants::replace(const std::vector<ApiKey>& api_keys) {
  std::map<std::string, CacheNamespace> next;
  for (const ApiKey& key : api_keys) next[owner_of_key(key.key)] = {};
  const bool separate = !share_prefix_cache_ && next.size() > 1;
  for (auto& [owner, cache_namespace] : next) {
    const auto known = namespaces_.find(owner);
    if (known != namespaces_.end()) {
      cache_namespace = known->second;
    } else if (separate) {
      cache_namespace = namespace_of(owner);
    }
  }
  namespaces_ = std::move(next);
}

std::string Tenants::stored(const std::string& owner) const {
  return behind_front_ ? owner : stored_owner(owner);
}

std::optional<std::string> Tenants::owner_of_stored(const std::string& stored) const {
  if (behind_front_) return stored;
  if (namespaces_.empty() && stored.empty()) return "";
  for (const auto& [owner, cache_namespace] : namespaces_)
    if (stored_owner(owner) == stored) return owner;
  return std::nullopt;
}

Tenant Tenants::of(const HttpRequest& request) const {
  if (behind_front_) return tenant_from(request.header(kTenantHeader));
  // Without API keys, all callers share one owner, whatever key they send.
  if (namespaces_.empty()) return {};
  Tenant tenant{.owner = request.batch_owner ? *request.batch_owner : owner_of(request)};
  if (share_prefix_cache_) return tenant;
  // A key that was removed while its request is open shares nothing any more.
  const auto known = namespaces_.find(tenant.owner);
  tenant.cache_namespace = known != namespaces_.end() ? known->second : namespace_of(tenant.owner);
  return tenant;
}

}  // namespace octavo::server
