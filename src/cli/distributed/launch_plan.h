// launch_plan.h - the command of each rank of `octavo launch`, here or over ssh. No command contains
// the secret. Any thread. No MLX.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/distributed/hostfile.h"
#include "cli/distributed/network_address.h"

namespace octavo {

// A flag of `octavo serve` as given: "--max-model-len", "4096".
using GivenFlag = std::pair<std::string, std::string>;

struct LaunchSettings {
  std::string model = {};
  std::vector<GivenFlag> flags = {};
  Hostfile hosts = {};
  // --tensor-parallel-size as given: the number of hosts. Unset: layers are divided.
  std::optional<int> tensor_parallel_size = {};
  NetworkAddress listen = {};             // of rank 0
  std::string program = {};               // the path of octavo here
  std::string remote_program = "octavo";  // on hosts that ssh connects to
};

struct RankCommand {
  std::string name = {};                // "rank 1 (mac-2)"
  std::vector<std::string> words = {};  // words[0]: a path or a name in PATH
  std::vector<std::pair<std::string, std::string>> environment = {};  // besides this process's
  bool reads_secret = false;  // from the first line of stdin; otherwise from the environment
};

// The variable from which a rank takes the secret.
inline constexpr const char* kClusterSecretVariable = "OCTAVO_DISTRIBUTED_SECRET";

// By rank. Throws SetupError if a host has no address, or if there is another number of ranks.
std::vector<RankCommand> plan_launch(const LaunchSettings& settings);

// A command that ssh runs on `host` with the secret in the environment, which it reads from stdin.
std::vector<std::string> ssh_words(
    const std::string& host, const std::vector<std::string>& words,
    const std::vector<std::pair<std::string, std::string>>& environment);

// 'it'\''s': one word for a POSIX shell.
std::string shell_quoted(std::string_view word);

}  // namespace octavo
