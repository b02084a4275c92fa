// sysfs_tree.h (testing) - writes the files that Linux has for the CPUs of a machine below a
// temporary folder, which replaces the root of the file system.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>

namespace octavo {

class SysfsTree {
 public:
  SysfsTree() { std::filesystem::create_directories(root_); }
  ~SysfsTree() { std::filesystem::remove_all(root_); }
  SysfsTree(const SysfsTree&) = delete;
  SysfsTree& operator=(const SysfsTree&) = delete;

  const std::filesystem::path& root() const { return root_; }

  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << "\n";
  }

  void online(const std::string& list) { write("sys/devices/system/cpu/online", list); }

  void node(int number, const std::string& list) {
    write("sys/devices/system/node/node" + std::to_string(number) + "/cpulist", list);
  }

  void cpu(int id, int package, int core_id, const std::string& siblings) {
    write(file_of(id, "topology/physical_package_id"), std::to_string(package));
    write(file_of(id, "topology/core_id"), std::to_string(core_id));
    write(file_of(id, "topology/thread_siblings_list"), siblings);
  }

  static std::string file_of(int id, const std::string& name) {
    return "sys/devices/system/cpu/cpu" + std::to_string(id) + "/" + name;
  }

  // Packages of equal cores, each a NUMA node. As on most servers, ids count all first threads of the
  // cores and then all second ones: with 2 packages of 48, CPU 96 is the sibling of CPU 0.
  void server(int packages, int cores_per_package, int threads_per_core) {
    const int cores = packages * cores_per_package;
    online("0-" + std::to_string(cores * threads_per_core - 1));
    for (int package = 0; package < packages; ++package) {
      std::string cpus;
      for (int thread = 0; thread < threads_per_core; ++thread) {
        const int first = thread * cores + package * cores_per_package;
        if (thread > 0) cpus += ",";
        cpus += std::to_string(first) + "-" + std::to_string(first + cores_per_package - 1);
      }
      node(package, cpus);
    }
    for (int core = 0; core < cores; ++core) {
      std::string siblings = std::to_string(core);
      for (int thread = 1; thread < threads_per_core; ++thread)
        siblings += "," + std::to_string(core + thread * cores);
      for (int thread = 0; thread < threads_per_core; ++thread)
        cpu(core + thread * cores, core / cores_per_package, core % cores_per_package, siblings);
    }
  }

 private:
  static inline std::atomic<int> count_ = 0;
  const std::filesystem::path root_ =
      std::filesystem::temp_directory_path() /
      ("octavo_sysfs_" + std::to_string(::getpid()) + "_" + std::to_string(++count_));
};

}  // namespace octavo
