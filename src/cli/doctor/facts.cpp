#include "cli/doctor/facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/cgroup.h"
#include "base/compute_pool.h"
#include "base/error.h"
#include "base/topology/thread_plan.h"
#include "hub/hub_settings.h"
#include "kernels/cpu/isa.h"
#include "kernels/kernel_check.h"
#include "kernels/runtime/device.h"
#include "server/server.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::vector<std::string> cpuinfo_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags") && !line.starts_with("Features")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

ProcessorFacts read_processor() {
  ProcessorFacts facts;
  for (cpu::Isa isa : cpu::available_isas()) facts.available_isas.emplace_back(name_of(isa));
  facts.flags = cpuinfo_flags();
  try {
    facts.active_isa = name_of(cpu::active_isa());
  } catch (const SetupError& error) {
    facts.isa_error = error.what();
  }
  return facts;
}

CoreFacts read_cores() {
  const ThreadPlan plan = plan_threads();
  CoreFacts facts{.allowed = plan.allowed_cores,
                  .cgroup_quota = cgroup_limits().cores,
                  .threads = compute_pool().threads(),
                  .topology = read_topology()};
  facts.machine = std::max(facts.topology.cores(), facts.allowed);
  return facts;
}

MemoryFacts read_memory() {
  MemoryFacts facts;
  facts.machine_bytes = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
                        static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  facts.cgroup_bytes = cgroup_limits().memory_bytes;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:"))
      facts.available_bytes = std::strtoull(line.c_str() + 13, nullptr, 10) * 1024;
  }
  return facts;
}

PortFacts read_port(uint16_t port) {
  try {
    const server::Listener listener("127.0.0.1", port);
    return {.port = port};
  } catch (const SetupError& error) {
    return {.port = port, .error = error.what()};
  }
}

// LM Studio has moved its folder; if neither exists, report the new location.
std::vector<fs::path> lm_studio_places(const HubSettings& settings) {
  std::vector<fs::path> places = settings.lm_studio;
  std::erase_if(places, [](const fs::path& place) {
    std::error_code error;
    return !fs::exists(place, error);
  });
  if (places.empty()) places.push_back(settings.lm_studio.front());
  return places;
}

std::vector<FolderFacts> read_folders() {
  const HubSettings settings = hub_settings_from_env();
  std::vector<FolderFacts> folders = {read_folder("Hugging Face cache", settings.cache, true)};
  for (const fs::path& place : lm_studio_places(settings))
    folders.push_back(read_folder("LM Studio models", place, false));
  folders.push_back(read_folder("Ollama models", settings.ollama, false));
  return folders;
}

uint64_t open_files_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : 0;
}

}  // namespace

std::string find_container(const std::string& root) {
  const fs::path top = root;
  std::error_code error;
  if (!variable("KUBERNETES_SERVICE_HOST").empty()) return "kubernetes";
  if (fs::exists(top / ".dockerenv", error)) return "docker";
  if (fs::exists(top / "run/.containerenv", error)) return "podman";
  std::string name;  // systemd-nspawn, LXC
  std::ifstream(top / "run/systemd/container") >> name;
  return name;
}

FolderFacts read_folder(std::string name, const std::string& path, bool ours) {
  FolderFacts facts{.name = std::move(name), .path = path, .ours = ours};
  std::error_code error;
  facts.exists = fs::is_directory(path, error);
  facts.readable = facts.exists && ::access(path.c_str(), R_OK | X_OK) == 0;
  fs::path there = path;
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  facts.writable = ::access(there.c_str(), W_OK | X_OK) == 0;
  if (const fs::space_info space = fs::space(there, error); !error)
    facts.free_bytes = space.available;
  return facts;
}

DoctorFacts read_doctor_facts(uint16_t port) {
  DoctorFacts facts;
  facts.version = OCTAVO_VERSION;
  facts.container = find_container();
  use_device(DeviceChoice::kAuto);
  if (const DeviceFacts device = device_facts(); device.kind == DeviceKind::kMetal) {
    facts.gpu = describe(device);
    facts.gpu_difference = check_kernels(DType::kBFloat16);
  }
  facts.processor = read_processor();
  facts.cores = read_cores();
  facts.memory = read_memory();
  facts.mlx_built = OCTAVO_MLX_VERSION;
  facts.mlx_loaded = mlx_version();
  facts.port = read_port(port);
  facts.folders = read_folders();
  facts.open_files = open_files_limit();
  return facts;
}

}  // namespace octavo
