#include "cli/distributed/hostfile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

std::string hostfile_problem(std::string_view text) {
  try {
    parse_hostfile(text, "hosts.json");
  } catch (const SetupError& error) {
    return error.what();
  }
  return "none";
}

TEST(Hostfile, ReadsTheObjectOfMlxLaunch) {
  const Hostfile file = parse_hostfile(R"({
    "backend": "jaccl",
    "envs": ["MLX_METAL_FAST_SYNCH=1", "A=b=c"],
    "hosts": [
      {"ssh": "mac-1", "ips": ["10.0.0.1", "10.1.0.1"], "rdma": [null, "rdma_en2"]},
      {"ssh": "user@mac-2", "ips": ["fd00::2"], "rdma": ["rdma_en2", null]}
    ]})",
                                       "hosts.json");
  ASSERT_EQ(file.hosts.size(), 2u);
  EXPECT_EQ(file.hosts[0].ssh, "mac-1");
  EXPECT_THAT(file.hosts[0].ips, ElementsAre("10.0.0.1", "10.1.0.1"));
  EXPECT_EQ(file.hosts[1].ssh, "user@mac-2");
  EXPECT_THAT(file.environment, ElementsAre(Pair("MLX_METAL_FAST_SYNCH", "1"), Pair("A", "b=c")));
  EXPECT_EQ(address_of(file, 1, "hosts.json"), "fd00::2");
}

TEST(Hostfile, ReadsTheBareList) {
  const Hostfile file =
      parse_hostfile(R"([{"ssh": "a", "ips": ["192.168.0.1"]}, {"ssh": "b"}])", "h");
  ASSERT_EQ(file.hosts.size(), 2u);
  EXPECT_THAT(file.hosts[1].ips, IsEmpty());
  EXPECT_THAT(file.environment, IsEmpty());
}

TEST(Hostfile, AMissingAddressIsNamedWhenItIsNeeded) {
  const Hostfile file = parse_hostfile(R"([{"ssh": "a", "ips": ["10.0.0.1"]}, {"ssh": "b"}])", "h");
  try {
    address_of(file, 1, "hosts.json");
    FAIL();
  } catch (const SetupError& error) {
    EXPECT_THAT(error.what(), HasSubstr("hosts.json: host 1 (b) has no \"ips\""));
  }
}

TEST(Hostfile, SaysWhatIsWrong) {
  EXPECT_THAT(hostfile_problem("{"), HasSubstr("hosts.json: is not valid JSON"));
  EXPECT_THAT(hostfile_problem(""), HasSubstr("is not valid JSON"));
  EXPECT_THAT(hostfile_problem("{}"), HasSubstr("has no key \"hosts\""));
  EXPECT_THAT(hostfile_problem("3"), HasSubstr("has no list of hosts"));
  EXPECT_THAT(hostfile_problem("[]"), HasSubstr("lists no hosts"));
  EXPECT_THAT(hostfile_problem(R"({"hosts": {}})"), HasSubstr("has no list of hosts"));
  EXPECT_THAT(hostfile_problem(R"(["a"])"), HasSubstr("host 0 is not an object"));
  EXPECT_THAT(hostfile_problem(R"([{"ssh": "a"}, {"ips": []}])"),
              HasSubstr("host 1 has no text \"ssh\""));
  EXPECT_THAT(hostfile_problem(R"([{"ssh": 1}])"), HasSubstr("host 0 has no text \"ssh\""));
  EXPECT_THAT(hostfile_problem(R"([{"ssh": "a", "ips": "10.0.0.1"}])"),
              HasSubstr("not a list of addresses"));
  EXPECT_THAT(hostfile_problem(R"([{"ssh": "a", "ips": [1]}])"),
              HasSubstr("not a list of addresses"));
  EXPECT_THAT(hostfile_problem(R"([{"ssh": "a", "ips": ["mac-1.local"]}])"),
              HasSubstr("\"mac-1.local\", which is not numeric"));
  EXPECT_THAT(hostfile_problem(R"({"hosts": [{"ssh": "a"}], "envs": ["A"]})"),
              HasSubstr("write NAME=VALUE"));
  EXPECT_THAT(hostfile_problem(R"({"hosts": [{"ssh": "a"}], "envs": ["1A=2"]})"),
              HasSubstr("NAME=VALUE"));
  EXPECT_THAT(hostfile_problem(R"({"hosts": [{"ssh": "a"}], "envs": ["A;B=2"]})"),
              HasSubstr("NAME=VALUE"));
  EXPECT_THAT(hostfile_problem(R"({"hosts": [{"ssh": "a"}], "envs": "A=1"})"),
              HasSubstr("not a list"));
  std::string many = "[";
  for (int i = 0; i < 65; ++i) many += std::string(i == 0 ? "" : ",") + R"({"ssh": "a"})";
  EXPECT_THAT(hostfile_problem(many + "]"), HasSubstr("lists 65 hosts; the limit is 64"));
}

TEST(Hostfile, NamesThatSshWouldReadAsOptionsAreRefused) {
  for (const char* name : {"-oProxyCommand=x", "", "a b", "a\\n", "a\\u0000b", "\\u00e9"}) {
    const std::string text = std::string(R"([{"ssh": ")") + name + R"("}])";
    EXPECT_THAT(hostfile_problem(text), HasSubstr("is not a host name")) << text;
  }
}

TEST(Hostfile, LocalNamesNeedNoSsh) {
  for (const HostEntry& host : local_hosts(3).hosts) EXPECT_TRUE(host.is_local());
  EXPECT_EQ(local_hosts(3).hosts.size(), 3u);
  EXPECT_TRUE(HostEntry{.ssh = "127.0.0.1"}.is_local());
  EXPECT_FALSE(HostEntry{.ssh = "10.0.0.1"}.is_local());
}

TEST(Hostfile, AFileThatCannotBeReadIsNamed) {
  for (const std::string& path : {std::string("/no/such/hosts.json"), std::string("/")}) {
    try {
      read_hostfile(path);
      FAIL();
    } catch (const SetupError& error) {
      EXPECT_THAT(error.what(), HasSubstr("--hosts " + path));
    }
  }
  const auto path = std::filesystem::temp_directory_path() / "octavo_hostfile_test.json";
  std::ofstream(path) << R"([{"ssh": "a"}])";
  EXPECT_EQ(read_hostfile(path.string()).hosts.size(), 1u);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace octavo
