#include "server/http/allowed_hosts.h"

#include <gtest/gtest.h>

namespace octavo::server {
namespace {

TEST(AllowedHosts, AddressesAndThisMachinesNamesAreAllowed) {
  const AllowedHosts hosts("Example.test", {});
  for (const char* host :
       {"", "127.0.0.1", "127.0.0.1:8000", "10.1.2.3:80", "[::1]", "[::1]:8000", "[fe80::1]:1",
        "localhost", "LocalHost:8000", "example.TEST", "example.test:9", "localhost:"})
    EXPECT_TRUE(hosts.allow(host)) << host;
}

TEST(AllowedHosts, OtherNamesAreNot) {
  const AllowedHosts hosts("127.0.0.1", {});
  for (const char* host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example",
        "evil-localhost", "127.0.0.1:8000.evil.example", "127.0.0.1@evil.example", "[evil.example]",
        "::1", "*", ":8000", "[::1", "[]", "x.localhost", "127.0.0.1, evil.example"})
    EXPECT_FALSE(hosts.allow(host)) << host;
}

TEST(AllowedHosts, NamesCanBeAdded) {
  const AllowedHosts hosts("127.0.0.1", {"one.test", " Two.test:8000", ""});
  for (const char* host : {"one.test", "ONE.test:81", "two.test", "two.test:9"})
    EXPECT_TRUE(hosts.allow(host)) << host;
  for (const char* host : {"a.one.test", "three.test", "*"})
    EXPECT_FALSE(hosts.allow(host)) << host;
}

TEST(AllowedHosts, AStarAllowsAll) {
  EXPECT_TRUE(AllowedHosts("127.0.0.1", {"*"}).allow("evil.example"));
}

}  // namespace
}  // namespace octavo::server
