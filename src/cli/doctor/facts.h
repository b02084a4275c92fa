// facts.h - what `octavo doctor` knows of the machine and the process. Read in one place;
// what follows from it is doctor_checks.h's, so that other machines' facts can be tested here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace octavo {

struct ProcessorFacts {
  std::string active_isa = {};                   // what the kernels use, as OCTAVO_ISA names it
  std::vector<std::string> available_isas = {};  // slowest first
  std::vector<std::string> flags = {};           // of /proc/cpuinfo; empty where there is none
  std::string isa_error = {};                    // why OCTAVO_ISA cannot be had
};

struct CoreFacts {
  int machine = 1;
  int allowed = 1;                       // by affinity
  std::optional<double> cgroup_quota{};  // cores' worth of time
  int threads = 1;                       // that would compute
};

struct MemoryFacts {
  uint64_t machine_bytes = 0;
  std::optional<uint64_t> cgroup_bytes{};
  uint64_t available_bytes = 0;  // what other programs leave; 0: not known
};

struct PortFacts {
  uint16_t port = 8000;
  std::string error = {};  // why it cannot be listened on; empty: it can
};

struct FolderFacts {
  std::string name = {};  // "Hugging Face cache"
  std::string path = {};
  bool ours = false;  // octavo writes there
  bool exists = false;
  bool readable = false;
  bool writable = false;  // it, or where it would be made
  uint64_t free_bytes = 0;
};

struct DoctorFacts {
  std::string version = {};
  std::string container = {};  // "docker", "kubernetes", ...; empty: none
  ProcessorFacts processor = {};
  std::string gpu = {};  // empty: the CPU computes
  CoreFacts cores = {};
  MemoryFacts memory = {};
  std::string mlx_built = {};
  std::string mlx_loaded = {};
  PortFacts port = {};
  std::vector<FolderFacts> folders = {};
  uint64_t open_files = 0;  // the limit the server may raise itself to
};

DoctorFacts read_doctor_facts(uint16_t port);

// The container this process is in by what such have at `root`, and by the environment.
std::string find_container(const std::string& root = "/");

// `path` need not exist.
FolderFacts read_folder(std::string name, const std::string& path, bool ours);

}  // namespace octavo
