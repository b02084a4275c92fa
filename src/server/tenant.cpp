#include "server/tenant.h"

#include <set>
#include <string_view>

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

Tenants::Tenants(const std::vector<std::string>& api_keys, bool share_prefix_cache,
                 bool behind_front)
    : separate_caches_(!share_prefix_cache &&
                       std::set<std::string>(api_keys.begin(), api_keys.end()).size() > 1),
      behind_front_(behind_front) {
  for (const std::string& key : api_keys) owners_.push_back(owner_of_key(key));
}

std::optional<std::string> Tenants::owner_of_stored(const std::string& stored) const {
  if (owners_.empty() && stored.empty()) return "";
  for (const std::string& owner : owners_)
    if (stored_owner(owner) == stored) return owner;
  return std::nullopt;
}

Tenant Tenants::of(const HttpRequest& request) const {
  if (behind_front_) return tenant_from(request.header(kTenantHeader));
  // Without API keys, all callers share one owner, whatever key they send.
  if (owners_.empty()) return {};
  Tenant tenant{.owner = request.batch_owner ? *request.batch_owner : owner_of(request)};
  if (separate_caches_) tenant.cache_namespace = namespace_of(tenant.owner);
  return tenant;
}

}  // namespace octavo::server
