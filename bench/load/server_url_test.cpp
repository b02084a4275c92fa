#include "bench/load/server_url.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo::bench {
namespace {

TEST(ServerUrl, HasHostPortAndPrefix) {
  const ServerUrl url = parse_server_url("http://127.0.0.1:8000/api/v2/");
  EXPECT_EQ(url.host, "127.0.0.1");
  EXPECT_EQ(url.port, "8000");
  EXPECT_EQ(url.prefix, "/api/v2");
  EXPECT_EQ(host_header(url), "127.0.0.1:8000");
}

TEST(ServerUrl, WithoutAPortIsPort80) {
  const ServerUrl url = parse_server_url("http://example.org/");
  EXPECT_EQ(url.host, "example.org");
  EXPECT_EQ(url.port, "80");
  EXPECT_EQ(url.prefix, "");
}

TEST(ServerUrl, KeepsTheColonsOfAnIpv6Address) {
  const ServerUrl url = parse_server_url("http://[::1]:9000");
  EXPECT_EQ(url.host, "::1");
  EXPECT_EQ(url.port, "9000");
  EXPECT_EQ(host_header(url), "[::1]:9000");
}

TEST(ServerUrl, RejectsUnsupportedUrls) {
  for (const char* bad : {"", "127.0.0.1:8000", "https://host", "http://", "http://host:",
                          "http://:1", "http://host:80a", "http://[::1", "http://[::1]80"})
    EXPECT_THROW(parse_server_url(bad), SetupError) << bad;
}

}  // namespace
}  // namespace octavo::bench
