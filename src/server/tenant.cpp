#include "server/tenant.h"

#include <set>
#include <string_view>

#include "server/api_keys.h"
#include "server/front_notes.h"

namespace octavo::server {
namespace {

// The label keeps the result, which the disk tier stores, different from the digests that the
// server compares keys with.
CacheNamespace namespace_of(const std::string& owner) {
  constexpr std::string_view kLabel = "octavo prefix cache of ";
  std::vector<uint8_t> bytes(kLabel.begin(), kLabel.end());
  bytes.insert(bytes.end(), owner.begin(), owner.end());
  return sha256(bytes);
}

}  // namespace

Tenants::Tenants(const std::vector<std::string>& api_keys, bool share_prefix_cache,
                 bool behind_front)
    : has_keys_(!api_keys.empty()),
      separate_caches_(!share_prefix_cache &&
                       std::set<std::string>(api_keys.begin(), api_keys.end()).size() > 1),
      behind_front_(behind_front) {}

Tenant Tenants::of(const HttpRequest& request) const {
  if (behind_front_) return tenant_from(request.header(kTenantHeader));
  // Without API keys, all callers share one owner, whatever key they send.
  if (!has_keys_) return {};
  Tenant tenant{.owner = owner_of(request)};
  if (separate_caches_) tenant.cache_namespace = namespace_of(tenant.owner);
  return tenant;
}

}  // namespace octavo::server
