// topology.h - the machine's CPUs: which share a core, a package or a NUMA node, and which are slow.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/topology/cpu_list.h"

namespace octavo {

struct Cpu {
  CpuId id = 0;
  CpuId core = 0;  // the lowest id among the CPUs of the same physical core
  int package = 0;
  int node = 0;               // NUMA
  bool is_efficient = false;  // an E core: clearly slower than the machine's fastest
};

struct Topology {
  std::vector<Cpu> cpus;  // online, by id; empty if the system does not describe them

  int cores() const;
  int efficient_cores() const;
  int packages() const;
  int nodes() const;  // that have CPUs
};

// Reads sysfs below `root`, which tests replace. Missing or invalid files never fail: a CPU without
// a description is a core of its own on package 0 and node 0. On macOS, asks sysctl instead.
Topology read_topology(const std::filesystem::path& root = "/");

// Returns a line for people, like "2 packages, 2 NUMA nodes, 96 cores with 192 CPUs".
std::string describe(const Topology& topology);

}  // namespace octavo
