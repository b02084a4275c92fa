// hostfile.h - the machines of `octavo launch` and `octavo doctor --hosts`, in the form of
// mlx.launch. Any thread. No MLX.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace octavo {

struct HostEntry {
  std::string ssh = {};               // what ssh connects to: a name, user@name or an address
  std::vector<std::string> ips = {};  // numeric; the first one carries the tensors

  // Started without ssh.
  bool is_local() const;
};

struct Hostfile {
  std::vector<HostEntry> hosts = {};                                  // by rank
  std::vector<std::pair<std::string, std::string>> environment = {};  // of all ranks
};

// Reads {"hosts": [{"ssh": "a", "ips": ["10.0.0.1"]}, ...], "envs": ["NAME=VALUE", ...]}, or only
// the list of hosts. The keys "backend" and "rdma", and unknown ones, are ignored. Throws SetupError
// that begins with `name` and says which host is wrong.
Hostfile parse_hostfile(std::string_view text, const std::string& name);

// Throws SetupError if the file cannot be read.
Hostfile read_hostfile(const std::string& path);

// `count` ranks on this machine.
Hostfile local_hosts(int count);

// The address of a rank's tensor connections. Throws SetupError if the file gives none.
const std::string& address_of(const Hostfile& file, size_t rank, const std::string& name);

}  // namespace octavo
