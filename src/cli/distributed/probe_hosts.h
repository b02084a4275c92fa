// probe_hosts.h - runs `octavo worker --probe` on the machines of a hostfile, here or over ssh, and
// measures the connections to them. No MLX.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/distributed/host_checks.h"
#include "cli/distributed/hostfile.h"

namespace octavo {

struct ProbeOptions {
  std::string program = {};  // the path of octavo here
  std::string remote_program = "octavo";
  bool quick = false;  // without the bandwidth of memory
  bool allow_public = false;
  // Called with what is being done.
  std::function<void(std::string_view)> progress = nullptr;
};

// By rank. A host that cannot be measured has an error. The first host must be this machine.
std::vector<HostFacts> probe_hosts(const Hostfile& hosts, const ProbeOptions& options);

}  // namespace octavo
