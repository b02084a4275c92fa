// host_checks.h - evaluates what `octavo doctor --hosts` has measured, and proposes how to run a
// model. Does no I/O, so that tests can use the facts of other machines. No MLX.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/distributed/link_probe.h"
#include "cli/distributed/pipeline_cost.h"
#include "cli/distributed/tensor_cost.h"
#include "cli/doctor/checks.h"

namespace octavo {

// What `octavo worker --probe` reports about a machine.
struct ProbeReport {
  std::string version = {};
  std::string arithmetic = {};
  std::string isa = {};
  uint64_t memory_bytes = 0;         // that octavo may use
  double read_bytes_per_second = 0;  // of memory; 0: not measured
  uint16_t port = 0;                 // where measure_link() connects
};

// One line of JSON.
std::string probe_line(const ProbeReport& report);
// Nothing if it is not such a line.
std::optional<ProbeReport> parse_probe_line(const std::string& line);

struct HostFacts {
  std::string name = {};     // as ssh names it
  std::string address = {};  // of the tensors
  std::string error = {};    // why there is no report or no link; empty: there are both
  ProbeReport report = {};
  std::optional<LinkSpeed> link = {};  // between the first host and this one; unset: the first host
};

// The model to propose a division for.
struct ModelFacts {
  std::string name = {};
  CostShape shape = {};
  TensorShape tensor = {};
  uint64_t weight_bytes = 0;
};

// One finding per host.
std::vector<Finding> check_hosts(const std::vector<HostFacts>& hosts);

// How to run the model on these machines: on one, divided by layers, or by matrices. Nothing if a
// host has a problem.
std::optional<Finding> propose(const std::vector<HostFacts>& hosts, const ModelFacts& model);

// The report of `octavo doctor --hosts --json`, indented.
std::string hosts_json(const std::vector<HostFacts>& hosts, const std::vector<Finding>& findings);

}  // namespace octavo
