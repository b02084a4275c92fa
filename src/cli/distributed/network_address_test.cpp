#include "cli/distributed/network_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

using testing::HasSubstr;

template <typename Call>
std::string address_problem(Call call) {
  try {
    call();
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(NetworkAddress, ReadsHostAndPort) {
  const auto parsed = [](std::string_view text) { return parse_network_address(text, "--x"); };
  EXPECT_EQ(parsed("10.0.0.1:7000"), (NetworkAddress{"10.0.0.1", 7000}));
  EXPECT_EQ(parsed("mac-1.local:0"), (NetworkAddress{"mac-1.local", 0}));
  EXPECT_EQ(parsed("[fd00::1]:65535"), (NetworkAddress{"fd00::1", 65535}));
  for (const char* text : {"10.0.0.1:7000", "[::1]:1"}) EXPECT_EQ(parsed(text).text(), text);
}

TEST(NetworkAddress, RefusesOtherForms) {
  for (const char* text : {"", ":", ":7000", "host", "host:", "host:port", "host:70000", "host:-1",
                           "host:7000 ", "fd00::1:7000", "[]:7000", "[fd00::1]", "host: 7"}) {
    EXPECT_THAT(address_problem([&] { parse_network_address(text, "--connect"); }),
                HasSubstr("--connect " + std::string(text) + ": write HOST:PORT"));
  }
}

TEST(NetworkAddress, KnowsPrivateAddresses) {
  for (const char* ip :
       {"127.0.0.1", "127.255.0.1", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.1",
        "192.168.1.1", "169.254.3.4", "100.64.0.1", "100.127.255.255", "::1", "fd12::1", "fc00::1",
        "fe80::1", "::ffff:10.0.0.1"})
    EXPECT_TRUE(is_private_address(ip)) << ip;
  for (const char* ip : {"0.0.0.0",
                         "8.8.8.8",
                         "9.255.255.255",
                         "11.0.0.0",
                         "172.15.0.1",
                         "172.32.0.1",
                         "192.169.0.1",
                         "192.167.255.255",
                         "100.63.255.255",
                         "100.128.0.0",
                         "169.255.0.1",
                         "126.0.0.1",
                         "128.0.0.1",
                         "::",
                         "2001:db8::1",
                         "fe00::1",
                         "::ffff:8.8.8.8",
                         "localhost",
                         "",
                         "10.0.0"})
    EXPECT_FALSE(is_private_address(ip)) << ip;
}

TEST(NetworkAddress, PublicAddressesNeedAFlag) {
  EXPECT_EQ(private_address_of("10.0.0.7", "--x", false), "10.0.0.7");
  const std::string refused =
      address_problem([] { private_address_of("0.0.0.0", "--distributed-listen", false); });
  EXPECT_THAT(refused, HasSubstr("--distributed-listen 0.0.0.0: 0.0.0.0 is not a private address"));
  EXPECT_THAT(refused, HasSubstr("--distributed-allow-public"));
  EXPECT_EQ(private_address_of("0.0.0.0", "--x", true), "0.0.0.0");
}

TEST(NetworkAddress, NamesAreResolved) {
  EXPECT_TRUE(is_private_address(private_address_of("localhost", "--x", false)));
  EXPECT_THAT(
      address_problem([] { private_address_of("no.such.host.invalid", "--connect", false); }),
      HasSubstr("--connect no.such.host.invalid: "));
}

}  // namespace
}  // namespace octavo
