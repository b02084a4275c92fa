#include "server/tenant.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "server/front_notes.h"

namespace octavo::server {
namespace {

HttpRequest with_key(const std::string& key) {
  return {.headers = {{"Authorization", "Bearer " + key}}};
}

std::vector<ApiKey> keys(const std::vector<std::string>& texts) {
  std::vector<ApiKey> all;
  for (const std::string& text : texts) all.push_back({.key = text});
  return all;
}

TEST(Tenants, SeveralKeysHaveTheirOwnNamespaces) {
  const Tenants tenants(keys({"one", "two"}), /*share_prefix_cache=*/false);
  const Tenant one = tenants.of(with_key("one"));
  const Tenant two = tenants.of({.headers = {{"x-api-key", "two"}}});
  EXPECT_NE(one.owner, two.owner);
  EXPECT_NE(one.cache_namespace, two.cache_namespace);
  EXPECT_NE(one.cache_namespace, CacheNamespace{});
  EXPECT_EQ(one.cache_namespace, tenants.of({.headers = {{"x-api-key", "one"}}}).cache_namespace);
}

TEST(Tenants, ASharedCacheHasOneNamespaceAndSeveralOwners) {
  const Tenants tenants(keys({"one", "two"}), /*share_prefix_cache=*/true);
  EXPECT_EQ(tenants.of(with_key("one")).cache_namespace, CacheNamespace{});
  EXPECT_NE(tenants.of(with_key("one")).owner, tenants.of(with_key("two")).owner);
}

TEST(Tenants, OneKeyUsesTheCommonNamespace) {
  for (const auto& texts :
       {std::vector<std::string>{"one"}, std::vector<std::string>{"one", "one"}}) {
    const Tenants tenants(keys(texts), /*share_prefix_cache=*/false);
    EXPECT_EQ(tenants.of(with_key("one")).cache_namespace, CacheNamespace{});
    EXPECT_FALSE(tenants.of(with_key("one")).owner.empty());
  }
}

TEST(Tenants, AKeyThatStaysKeepsItsNamespace) {
  Tenants tenants(keys({"one"}), /*share_prefix_cache=*/false);
  tenants.replace(keys({"one", "two"}));
  EXPECT_EQ(tenants.of(with_key("one")).cache_namespace, CacheNamespace{});
  const CacheNamespace two = tenants.of(with_key("two")).cache_namespace;
  EXPECT_NE(two, CacheNamespace{});
  tenants.replace(keys({"two", "three"}));
  EXPECT_EQ(tenants.of(with_key("two")).cache_namespace, two);
  EXPECT_NE(tenants.of(with_key("three")).cache_namespace, two);
  // Removed while its request is open.
  EXPECT_NE(tenants.of(with_key("one")).cache_namespace, CacheNamespace{});
  tenants.replace(keys({"two"}));
  EXPECT_EQ(tenants.of(with_key("two")).cache_namespace, two);
}

TEST(Tenants, TheOnlyKeyUsesTheCommonNamespaceAlsoWhenItIsNew) {
  Tenants tenants(keys({"one"}), /*share_prefix_cache=*/false);
  tenants.replace(keys({"two"}));
  EXPECT_EQ(tenants.of(with_key("two")).cache_namespace, CacheNamespace{});
}

TEST(Tenants, WithoutKeysAllCallersAreOneOwner) {
  const Tenants tenants({}, /*share_prefix_cache=*/false);
  EXPECT_EQ(tenants.of(with_key("any")).owner, "");
  EXPECT_EQ(tenants.of({}).owner, "");
}

TEST(Tenants, AStoredOwnerIsFoundWhileItsKeyExists) {
  const Tenants both(keys({"one", "two"}), false);
  const std::string owner = both.of(with_key("two")).owner;
  const std::string stored = stored_owner(owner);
  EXPECT_NE(stored, owner);
  EXPECT_EQ(both.owner_of_stored(stored), owner);
  EXPECT_FALSE(Tenants(keys({"one"}), false).owner_of_stored(stored));
  EXPECT_FALSE(Tenants({}, false).owner_of_stored(stored));
  EXPECT_EQ(Tenants({}, false).owner_of_stored(stored_owner("")), "");
}

// A child has no keys to find owners with, so the front tells it the stored ones.
TEST(Tenants, BehindAFrontTheStoredOwnerIsTheOwner) {
  const Tenants child({}, false, /*behind_front=*/true);
  const std::string stored = stored_owner("digest of a key");
  EXPECT_EQ(child.stored(stored), stored);
  EXPECT_EQ(child.owner_of_stored(stored), stored);
  EXPECT_EQ(Tenants(keys({"one"}), false).stored("digest of a key"), stored);
}

TEST(Tenants, ALineOfABatchHasTheOwnerOfTheBatch) {
  const Tenants both(keys({"one", "two"}), false);
  const Tenant two = both.of(with_key("two"));
  const Tenant of_line = both.of({.batch_owner = two.owner});
  EXPECT_EQ(of_line.owner, two.owner);
  EXPECT_EQ(of_line.cache_namespace, two.cache_namespace);
}

TEST(Tenants, OnlyAFrontProcessCanNameTheTenant) {
  const Tenant one = Tenants(keys({"one", "two"}), false).of(with_key("one"));
  const HttpRequest request{.headers = {{kTenantHeader, to_text(one)}}};
  const Tenant seen = Tenants({}, false, /*behind_front=*/true).of(request);
  EXPECT_EQ(seen.owner, one.owner);
  EXPECT_EQ(seen.cache_namespace, one.cache_namespace);
  EXPECT_EQ(Tenants({}, false).of(request).owner, "");
  EXPECT_EQ(Tenants({}, false, true).of({}).owner, "");
  for (const std::string& text : {std::string("0"), std::string(128, 'g'), std::string(127, '0')})
    EXPECT_THROW(tenant_from(text), RequestError) << text;
}

}  // namespace
}  // namespace octavo::server
