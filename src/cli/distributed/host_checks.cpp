#include "cli/distributed/host_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/units.h"

namespace octavo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kManyStreams = 16;         // for which the throughput is computed
constexpr double kSlowLink = 100e6;      // bytes per second: below 1 Gb/s
constexpr double kLongRoundTrip = 2e-3;  // seconds
constexpr double kGigabit = 125e6;       // bytes per second

std::string describe_link(const LinkSpeed& link) {
  return fmt::format("{:.0f} us there and back, {:.2f} Gb/s to it, {:.2f} Gb/s from it",
                     link.round_trip_seconds * 1e6, link.send_bytes_per_second / kGigabit,
                     link.receive_bytes_per_second / kGigabit);
}

std::string describe_host(const HostFacts& host) {
  const ProbeReport& report = host.report;
  std::string text = fmt::format("{}, {} usable", report.isa, format_bytes(report.memory_bytes));
  if (report.read_bytes_per_second > 0)
    text += fmt::format(", reads {:.1f} GB/s", report.read_bytes_per_second / 1e9);
  if (host.link) text += "; " + describe_link(*host.link);
  return text;
}

Finding check_host(const HostFacts& host, const HostFacts& first) {
  Finding finding{.name = host.name};
  const auto worse = [&](Health health, std::string text, std::string advice) {
    finding.health = health;
    finding.text = std::move(text);
    finding.advice = std::move(advice);
  };
  if (!host.error.empty()) {
    worse(Health::kProblem, host.error,
          "Check that ssh connects without a password, that octavo is in its PATH (or use "
          "--remote-program), and that no firewall blocks the address.");
    return finding;
  }
  finding.text = describe_host(host);
  if (host.report.version != first.report.version) {
    worse(Health::kProblem,
          fmt::format("octavo {}, but {} has {}", host.report.version, first.name,
                      first.report.version),
          "Install the same version on all machines.");
  } else if (host.report.arithmetic != first.report.arithmetic) {
    worse(Health::kProblem,
          fmt::format("computes with arithmetic {}, but {} with {}", host.report.arithmetic,
                      first.name, first.report.arithmetic),
          "Use machines of the same kind, or --device cpu on all of them.");
  } else if (host.link && std::min(host.link->send_bytes_per_second,
                                   host.link->receive_bytes_per_second) < kSlowLink) {
    finding.health = Health::kWarning;
    finding.advice = "Slower than 1 Gb/s: long prompts take long. Use a cable, not Wi-Fi.";
  } else if (host.link && host.link->round_trip_seconds > kLongRoundTrip) {
    finding.health = Health::kWarning;
    finding.advice = "A round trip of over 2 ms slows every token. Use a direct network.";
  }
  return finding;
}

std::vector<CostMachine> machines_of(const std::vector<HostFacts>& hosts) {
  std::vector<CostMachine> machines;
  for (const HostFacts& host : hosts)
    machines.push_back({.read_bytes_per_second = host.report.read_bytes_per_second,
                        .memory_bytes = static_cast<double>(host.report.memory_bytes)});
  return machines;
}

// The slowest of all: neighbours are not measured against each other.
CostLink slowest_link(const std::vector<HostFacts>& hosts) {
  CostLink slowest{.bytes_per_second = 1e12, .round_trip_seconds = 0};
  for (const HostFacts& host : hosts) {
    if (!host.link) continue;
    slowest.bytes_per_second = std::min({slowest.bytes_per_second, host.link->send_bytes_per_second,
                                         host.link->receive_bytes_per_second});
    slowest.round_trip_seconds =
        std::max(slowest.round_trip_seconds, host.link->round_trip_seconds);
  }
  return slowest;
}

template <typename Cost>
std::string expected(const Cost& cost) {
  return fmt::format("about {:.1f} tokens/s for one stream and {:.1f} for {} together",
                     cost.one_stream, cost.all_streams, kManyStreams);
}

template <typename Cost>
std::string expected_with_network(const Cost& cost) {
  return fmt::format("{} ({:.0f}% of one stream's time is network)", expected(cost),
                     cost.network_share * 100);
}

std::string by_layers(const PipelineCost& cost) {
  return fmt::format("--pipeline-parallel-size {} with {} layers: {}", cost.layers.size(),
                     fmt::join(cost.layers, " + "), expected_with_network(cost));
}

std::string by_matrices(const TensorCost& cost, size_t machines) {
  return fmt::format("--tensor-parallel-size {}: {}, and at most {:.0f} prompt tokens/s", machines,
                     expected_with_network(cost), cost.prompt_limit);
}

// At least this much faster, for one stream, than one machine: otherwise the others are better used
// as servers of their own.
constexpr double kWorthOthers = 1.1;
// Prompt tokens per second: a link that carries fewer makes every prompt wait.
constexpr double kPromptLimit = 1000;

}  // namespace

std::string probe_line(const ProbeReport& report) {
  return Json{{"version", report.version},
              {"arithmetic", report.arithmetic},
              {"isa", report.isa},
              {"memory_bytes", report.memory_bytes},
              {"read_bytes_per_second", report.read_bytes_per_second},
              {"port", report.port}}
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::optional<ProbeReport> parse_probe_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  for (const char* key : {"version", "arithmetic", "isa"})
    if (!json.contains(key) || !json[key].is_string()) return std::nullopt;
  if (!json.contains("memory_bytes") || !json["memory_bytes"].is_number_unsigned())
    return std::nullopt;
  if (!json.contains("read_bytes_per_second") || !json["read_bytes_per_second"].is_number())
    return std::nullopt;
  if (!json.contains("port") || !json["port"].is_number_unsigned() || json["port"] > 65535)
    return std::nullopt;
  return ProbeReport{.version = json["version"].get<std::string>(),
                     .arithmetic = json["arithmetic"].get<std::string>(),
                     .isa = json["isa"].get<std::string>(),
                     .memory_bytes = json["memory_bytes"].get<uint64_t>(),
                     .read_bytes_per_second = json["read_bytes_per_second"].get<double>(),
                     .port = json["port"].get<uint16_t>()};
}

std::vector<Finding> check_hosts(const std::vector<HostFacts>& hosts) {
  std::vector<Finding> findings;
  for (const HostFacts& host : hosts) findings.push_back(check_host(host, hosts.front()));
  return findings;
}

std::optional<Finding> propose(const std::vector<HostFacts>& hosts, const ModelFacts& model) {
  if (worst_of(check_hosts(hosts)) == Health::kProblem) return std::nullopt;
  const std::vector<CostMachine> machines = machines_of(hosts);
  for (const CostMachine& machine : machines)
    if (machine.read_bytes_per_second <= 0) return std::nullopt;
  Finding finding{.name = "proposal"};
  const auto weights = static_cast<double>(model.weight_bytes);
  const CostLink link = slowest_link(hosts);
  const TensorCost tensor = tensor_cost(model.shape, model.tensor, machines, link, kManyStreams);
  // The fastest machine that the whole model fits on.
  std::optional<size_t> alone;
  for (size_t i = 0; i < machines.size(); ++i) {
    const bool fits = weights <= kWeightsShare * machines[i].memory_bytes;
    if (fits &&
        (!alone || machines[i].read_bytes_per_second > machines[*alone].read_bytes_per_second))
      alone = i;
  }
  if (alone) {
    const PipelineCost one =
        pipeline_cost(model.shape, std::span(machines).subspan(*alone, 1), {}, kManyStreams);
    finding.text = fmt::format(
        "{} fits on {} alone: {}; serve it there, or on each machine with a router in front",
        model.name, hosts[*alone].name, expected(one));
    if (hosts.size() > 1 && tensor.fits && tensor.one_stream > kWorthOthers * one.one_stream)
      finding.text += fmt::format("; for a faster single stream, {}; computed, not measured",
                                  by_matrices(tensor, hosts.size()));
    return finding;
  }
  if (model.shape.layers < static_cast<int>(hosts.size())) {
    finding.health = Health::kProblem;
    finding.text = fmt::format("{} has {} layers for {} machines", model.name, model.shape.layers,
                               hosts.size());
    finding.advice = "Use fewer machines.";
    return finding;
  }
  const PipelineCost cost = pipeline_cost(model.shape, machines, link, kManyStreams);
  if (!cost.fits && !tensor.fits) {
    finding.health = Health::kProblem;
    finding.text = fmt::format("the weights of {} ({}) do not fit on these machines", model.name,
                               format_bytes(model.weight_bytes));
    finding.advice = "Add a machine, or choose a smaller quantisation.";
    return finding;
  }
  // The better one comes first.
  std::vector<std::string> ways;
  if (cost.fits) ways.push_back(by_layers(cost));
  if (tensor.fits) ways.push_back(by_matrices(tensor, hosts.size()));
  if (ways.size() == 2 && tensor.all_streams > cost.all_streams &&
      tensor.prompt_limit > kPromptLimit)
    std::swap(ways[0], ways[1]);
  finding.text = fmt::format("{}; computed, not measured", fmt::join(ways, "; or "));
  return finding;
}

std::string hosts_json(const std::vector<HostFacts>& hosts, const std::vector<Finding>& findings) {
  Json report;
  report["status"] = name_of(worst_of(findings));
  report["checks"] = Json::array();
  for (const Finding& finding : findings) {
    report["checks"].push_back({{"name", finding.name},
                                {"status", name_of(finding.health)},
                                {"detail", finding.text},
                                {"fix", finding.advice}});
  }
  report["hosts"] = Json::array();
  for (const HostFacts& host : hosts) {
    Json json = {{"name", host.name}, {"address", host.address}};
    if (host.error.empty()) {
      json["version"] = host.report.version;
      json["arithmetic"] = host.report.arithmetic;
      json["isa"] = host.report.isa;
      json["memory_bytes"] = host.report.memory_bytes;
      json["read_bytes_per_second"] = host.report.read_bytes_per_second;
    }
    if (host.link) {
      json["round_trip_seconds"] = host.link->round_trip_seconds;
      json["send_bytes_per_second"] = host.link->send_bytes_per_second;
      json["receive_bytes_per_second"] = host.link->receive_bytes_per_second;
    }
    report["hosts"].push_back(std::move(json));
  }
  return report.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace octavo
