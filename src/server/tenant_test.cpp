#include "server/tenant.h"

#include <gtest/gtest.h>

namespace octavo::server {
namespace {

HttpRequest with_key(const std::string& key) {
  return {.headers = {{"Authorization", "Bearer " + key}}};
}

TEST(Tenants, SeveralKeysHaveTheirOwnNamespaces) {
  const Tenants tenants({"one", "two"}, /*share_prefix_cache=*/false);
  const Tenant one = tenants.of(with_key("one"));
  const Tenant two = tenants.of({.headers = {{"x-api-key", "two"}}});
  EXPECT_NE(one.owner, two.owner);
  EXPECT_NE(one.cache_namespace, two.cache_namespace);
  EXPECT_NE(one.cache_namespace, CacheNamespace{});
  EXPECT_EQ(one.cache_namespace, tenants.of({.headers = {{"x-api-key", "one"}}}).cache_namespace);
}

TEST(Tenants, ASharedCacheHasOneNamespaceAndSeveralOwners) {
  const Tenants tenants({"one", "two"}, /*share_prefix_cache=*/true);
  EXPECT_EQ(tenants.of(with_key("one")).cache_namespace, CacheNamespace{});
  EXPECT_NE(tenants.of(with_key("one")).owner, tenants.of(with_key("two")).owner);
}

TEST(Tenants, OneKeyUsesTheCommonNamespace) {
  for (const std::vector<std::string>& keys :
       {std::vector<std::string>{"one"}, std::vector<std::string>{"one", "one"}}) {
    const Tenants tenants(keys, /*share_prefix_cache=*/false);
    EXPECT_EQ(tenants.of(with_key("one")).cache_namespace, CacheNamespace{});
    EXPECT_FALSE(tenants.of(with_key("one")).owner.empty());
  }
}

TEST(Tenants, WithoutKeysAllCallersAreOneOwner) {
  const Tenants tenants({}, /*share_prefix_cache=*/false);
  EXPECT_EQ(tenants.of(with_key("any")).owner, "");
  EXPECT_EQ(tenants.of({}).owner, "");
}

}  // namespace
}  // namespace octavo::server
