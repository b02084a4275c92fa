#include "cli/distributed/launch_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.h"

namespace octavo {
namespace {

// Flags of `octavo serve` that also apply to the other ranks; rank 0 sends them everything else.
constexpr std::array kForWorkers = {"--device",
                                    "--memory-fraction",
                                    "--memory-limit",
                                    "--wired-limit",
                                    "--threads",
                                    "--pin-threads",
                                    "--merge-adapter",
                                    "--strict-config",
                                    "--distributed-timeout",
                                    "--distributed-allow-public"};

std::string as_word(const GivenFlag& flag) { return fmt::format("{}={}", flag.first, flag.second); }

std::vector<std::string> serve_words(const LaunchSettings& settings) {
  std::vector<std::string> words = {settings.program, "serve", settings.model};
  for (const GivenFlag& flag : settings.flags) words.push_back(as_word(flag));
  const char* size =
      settings.tensor_parallel_size ? "--tensor-parallel-size" : "--pipeline-parallel-size";
  words.push_back(fmt::format("{}={}", size, settings.hosts.hosts.size()));
  words.push_back(fmt::format("--distributed-listen={}", settings.listen.text()));
  words.emplace_back("--end-with-stdin");
  return words;
}

std::vector<std::string> worker_words(const LaunchSettings& settings, size_t rank) {
  const HostEntry& host = settings.hosts.hosts[rank];
  std::vector<std::string> words = {host.is_local() ? settings.program : settings.remote_program,
                                    "worker", settings.model};
  words.push_back(fmt::format("--connect={}", settings.listen.text()));
  words.push_back(fmt::format("--rank={}", rank));
  words.push_back(fmt::format("--listen={}", address_of(settings.hosts, rank, "--hosts")));
  for (const GivenFlag& flag : settings.flags)
    if (std::ranges::count(kForWorkers, flag.first) > 0) words.push_back(as_word(flag));
  return words;
}

}  // namespace

std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<std::string> ssh_words(
    const std::string& host, const std::vector<std::string>& words,
    const std::vector<std::pair<std::string, std::string>>& environment) {
  std::string script = fmt::format("IFS= read -r {0} && export {0} && exec env",
                                   std::string_view(kClusterSecretVariable));
  for (const auto& [name, value] : environment)
    script += fmt::format(" {}={}", name, shell_quoted(value));
  for (const std::string& word : words) script += " " + shell_quoted(word);
  // The login shell of the host need not be a POSIX shell.
  return {"ssh",
          "-o",
          "BatchMode=yes",
          "-o",
          "ConnectTimeout=10",
          host,
          "exec sh -c " + shell_quoted(script)};
}

std::vector<RankCommand> plan_launch(const LaunchSettings& settings) {
  const int ranks = static_cast<int>(settings.hosts.hosts.size());
  if (settings.tensor_parallel_size.value_or(ranks) != ranks)
    throw SetupError(
        fmt::format("--tensor-parallel-size {}: there are {} ranks, and each takes a part of every "
                    "matrix; give {}, or another number of hosts",
                    *settings.tensor_parallel_size, ranks, ranks));
  std::vector<RankCommand> commands = {{.name = "rank 0",
                                        .words = serve_words(settings),
                                        .environment = settings.hosts.environment}};
  for (size_t rank = 1; rank < settings.hosts.hosts.size(); ++rank) {
    const HostEntry& host = settings.hosts.hosts[rank];
    RankCommand command{.name = fmt::format("rank {} ({})", rank, host.ssh),
                        .words = worker_words(settings, rank)};
    if (host.is_local()) {
      command.environment = settings.hosts.environment;
    } else {
      command.words = ssh_words(host.ssh, command.words, settings.hosts.environment);
      command.reads_secret = true;
    }
    commands.push_back(std::move(command));
  }
  return commands;
}

}  // namespace octavo
