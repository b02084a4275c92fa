// facts.h - the facts that `octavo doctor` collects about the machine and the process. checks.h
// evaluates them, so that its tests can use the facts of other machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/topology/topology.h"

namespace octavo {

struct ProcessorFacts {
  std::string active_isa = {};                   // the kernels' instruction set, as in OCTAVO_ISA
  std::vector<std::string> available_isas = {};  // slowest first
  std::vector<std::string> flags = {};           // from /proc/cpuinfo, if it exists
  std::string isa_error = {};                    // why OCTAVO_ISA cannot be used
};

struct CoreFacts {
  int machine = 1;                       // physical cores
  int allowed = 1;                       // by the affinity mask and the cgroup's cpuset
  std::optional<double> cgroup_quota{};  // CPU time limit, in cores
  int threads = 1;                       // compute threads
  Topology topology = {};
};

struct MemoryFacts {
  uint64_t machine_bytes = 0;
  std::optional<uint64_t> cgroup_bytes{};
  uint64_t available_bytes = 0;  // not used by other programs; 0: unknown
};

struct PortFacts {
  uint16_t port = 8000;
  std::string error = {};  // why octavo cannot listen on it; empty if it can
};

struct FolderFacts {
  std::string name = {};  // "Hugging Face cache"
  std::string path = {};
  bool ours = false;  // octavo writes there
  bool exists = false;
  bool readable = false;
  bool writable = false;  // the folder, or the parent it would be created in
  uint64_t free_bytes = 0;
};

struct DoctorFacts {
  std::string version = {};
  std::string container = {};  // "docker", "kubernetes", ...; empty: none
  ProcessorFacts processor = {};
  std::string gpu = {};             // empty: none, runs on the CPU
  std::string gpu_difference = {};  // between kernels that must agree (kernels/kernel_check.h)
  CoreFacts cores = {};
  MemoryFacts memory = {};
  std::string mlx_built = {};
  std::string mlx_loaded = {};
  PortFacts port = {};
  std::vector<FolderFacts> folders = {};
  uint64_t open_files = 0;  // the hard limit of open files
};

DoctorFacts read_doctor_facts(uint16_t port);

// Returns the kind of container that this process runs in, judging by marker files under `root` and
// the environment; empty if none.
std::string find_container(const std::string& root = "/");

// Collects the facts about `path`, which need not exist.
FolderFacts read_folder(std::string name, const std::string& path, bool ours);

}  // namespace octavo
