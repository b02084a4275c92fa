#include "cli/distributed/host_checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace octavo {
namespace {

using testing::HasSubstr;
using testing::Not;

HostFacts healthy_host(const std::string& name, bool first = false) {
  HostFacts host{.name = name, .address = "10.0.0.1"};
  host.report = {.version = "0.1.0",
                 .arithmetic = "v1",
                 .isa = "avx2",
                 .memory_bytes = uint64_t{16} << 30,
                 .read_bytes_per_second = 40e9,
                 .port = 7001};
  if (!first)
    host.link = {.round_trip_seconds = 150e-6,
                 .send_bytes_per_second = 118e6,
                 .receive_bytes_per_second = 117e6};
  return host;
}

std::vector<HostFacts> two_machines() { return {healthy_host("a", true), healthy_host("b")}; }

ModelFacts model_of(double gigabytes) {
  return {.name = "m",
          .shape = {.layers = 32,
                    .layer_bytes = gigabytes * 1e9 / 33,
                    .head_bytes = gigabytes * 1e9 / 33,
                    .row_bytes = 8192},
          .tensor = {.gathers = std::vector<double>(128, 6656.0),
                     .vocab = 100'000,
                     .divided_bytes = gigabytes * 1e9,
                     .most_ranks = 8},
          .weight_bytes = static_cast<uint64_t>(gigabytes * 1e9)};
}

std::vector<HostFacts> machines_on_a_fast_network() {
  auto hosts = two_machines();
  hosts[1].link = {
      .round_trip_seconds = 10e-6, .send_bytes_per_second = 5e9, .receive_bytes_per_second = 5e9};
  return hosts;
}

TEST(HostChecks, AProbesLineIsReadBack) {
  const ProbeReport report = healthy_host("a").report;
  const auto read = parse_probe_line(probe_line(report));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->version, "0.1.0");
  EXPECT_EQ(read->memory_bytes, uint64_t{16} << 30);
  EXPECT_EQ(read->read_bytes_per_second, 40e9);
  EXPECT_EQ(read->port, 7001);
  for (const char* line : {"", "octavo: error", "{}", "[]", R"({"version": 1})",
                           R"({"version":"","arithmetic":"","isa":"","memory_bytes":-1,)"
                           R"("read_bytes_per_second":0,"port":1})",
                           R"({"version":"","arithmetic":"","isa":"","memory_bytes":1,)"
                           R"("read_bytes_per_second":0,"port":70000})"})
    EXPECT_FALSE(parse_probe_line(line)) << line;
}

TEST(HostChecks, HealthyHostsAreDescribed) {
  const auto findings = check_hosts(two_machines());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(worst_of(findings), Health::kOk);
  EXPECT_EQ(findings[0].text, "avx2, 16.0 GiB usable, reads 40.0 GB/s");
  EXPECT_EQ(findings[1].text,
            "avx2, 16.0 GiB usable, reads 40.0 GB/s; 150 us there and back, 0.94 Gb/s to it, 0.94 "
            "Gb/s from it");
}

TEST(HostChecks, AHostThatDoesNotAnswerIsAProblem) {
  auto hosts = two_machines();
  hosts[1].error = "ssh: connect to host b port 22: Connection refused";
  const auto findings = check_hosts(hosts);
  EXPECT_EQ(findings[1].health, Health::kProblem);
  EXPECT_EQ(findings[1].text, hosts[1].error);
  EXPECT_THAT(findings[1].advice, HasSubstr("ssh"));
  EXPECT_FALSE(propose(hosts, model_of(20)));
}

TEST(HostChecks, OtherVersionsAndArithmeticAreProblems) {
  auto hosts = two_machines();
  hosts[1].report.version = "0.2.0";
  EXPECT_THAT(check_hosts(hosts)[1].text, HasSubstr("octavo 0.2.0, but a has 0.1.0"));
  hosts = two_machines();
  hosts[1].report.arithmetic = "metal-apple9";
  EXPECT_EQ(check_hosts(hosts)[1].health, Health::kProblem);
  EXPECT_THAT(check_hosts(hosts)[1].text, HasSubstr("arithmetic metal-apple9, but a with v1"));
  hosts = two_machines();
  hosts[1].report.isa = "amx";
  EXPECT_EQ(worst_of(check_hosts(hosts)), Health::kOk) << "instruction sets may differ";
}

TEST(HostChecks, SlowLinksAreWarnings) {
  auto hosts = two_machines();
  hosts[1].link->receive_bytes_per_second = 30e6;
  EXPECT_EQ(check_hosts(hosts)[1].health, Health::kWarning);
  EXPECT_THAT(check_hosts(hosts)[1].advice, HasSubstr("1 Gb/s"));
  hosts = two_machines();
  hosts[1].link->round_trip_seconds = 5e-3;
  EXPECT_THAT(check_hosts(hosts)[1].advice, HasSubstr("2 ms"));
}

TEST(HostChecks, AModelThatFitsOnOneMachineStaysThere) {
  auto hosts = two_machines();
  hosts[1].report.read_bytes_per_second = 80e9;
  const auto finding = propose(hosts, model_of(10));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->health, Health::kOk);
  EXPECT_THAT(finding->text, HasSubstr("m fits on b alone: about 8.0 tokens/s for one stream"));
}

TEST(HostChecks, ALargerModelIsDivided) {
  const auto finding = propose(two_machines(), model_of(20));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->health, Health::kOk);
  EXPECT_THAT(finding->text, HasSubstr("--pipeline-parallel-size 2 with 16 + 16 layers: about 2.0 "
                                       "tokens/s for one stream"));
  EXPECT_THAT(finding->text, HasSubstr("computed, not measured"));
  // 250 ms of reading, 130 half round trips, and 1.05 MB.
  EXPECT_THAT(finding->text, HasSubstr("; or --tensor-parallel-size 2: about 3.7 tokens/s"));
  ModelFacts few_heads = model_of(20);
  few_heads.tensor.most_ranks = 1;
  EXPECT_THAT(propose(two_machines(), few_heads)->text, Not(HasSubstr("tensor")));
}

TEST(HostChecks, AFastNetworkMakesOneStreamFaster) {
  const auto divided = propose(machines_on_a_fast_network(), model_of(20));
  ASSERT_TRUE(divided);
  EXPECT_TRUE(divided->text.starts_with("--tensor-parallel-size 2: about 4.0 tokens/s for one"))
      << divided->text;
  EXPECT_THAT(divided->text, HasSubstr("; or --pipeline-parallel-size 2 with"));
  const auto alone = propose(machines_on_a_fast_network(), model_of(10));
  ASSERT_TRUE(alone);
  EXPECT_THAT(alone->text, HasSubstr("fits on a alone"));
  EXPECT_THAT(alone->text,
              HasSubstr("for a faster single stream, --tensor-parallel-size 2: about 7.9"));
  auto far = two_machines();
  far[1].link->round_trip_seconds = 5e-3;
  EXPECT_THAT(propose(far, model_of(10))->text, Not(HasSubstr("tensor")));
}

TEST(HostChecks, AModelThatFitsNowhereIsAProblem) {
  const auto finding = propose(two_machines(), model_of(60));
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->health, Health::kProblem);
  EXPECT_THAT(finding->text, HasSubstr("do not fit"));
  ModelFacts flat = model_of(20);
  flat.shape.layers = 1;
  EXPECT_THAT(propose(two_machines(), flat)->text, HasSubstr("1 layers for 2 machines"));
}

TEST(HostChecks, WithoutABandwidthNothingIsProposed) {
  auto hosts = two_machines();
  hosts[0].report.read_bytes_per_second = 0;
  EXPECT_FALSE(propose(hosts, model_of(20)));
}

TEST(HostChecks, JsonHasAllFacts) {
  auto hosts = two_machines();
  hosts.push_back({.name = "c", .address = "10.0.0.3", .error = "unreachable"});
  const auto report = nlohmann::json::parse(hosts_json(hosts, check_hosts(hosts)));
  EXPECT_EQ(report["status"], "problem");
  EXPECT_EQ(report["checks"].size(), 3u);
  EXPECT_EQ(report["hosts"][1]["round_trip_seconds"], 150e-6);
  EXPECT_EQ(report["hosts"][0].count("round_trip_seconds"), 0u);
  EXPECT_EQ(report["hosts"][2].count("version"), 0u);
}

}  // namespace
}  // namespace octavo
