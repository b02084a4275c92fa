#include "cli/distributed/probe_hosts.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <unistd.h>

#include <array>
#include <chrono>

#include "base/error.h"
#include "base/log_text.h"
#include "base/secret_file.h"
#include "cli/distributed/launch_plan.h"
#include "cli/distributed/network_address.h"
#include "cli/distributed/spawned_process.h"

namespace octavo {
namespace {

using HostClock = std::chrono::steady_clock;

// Connecting, starting octavo and measuring its memory.
constexpr std::chrono::seconds kTimeToReport{60};
constexpr size_t kLongestOutput = 64u << 10;

// `octavo worker --probe` on one machine. It ends when this is destroyed.
class RemoteProbe {
 public:
  RemoteProbe(const HostEntry& host, bool here, const std::string& address,
              const ProbeOptions& options, const std::string& secret)
      : process_(spawn(host, here, address, options, secret)) {
    if (!here) process_.write_input(secret + "\n");
  }

  // Throws SetupError with what it printed if it does not report in time.
  ProbeReport report() {
    const auto deadline = HostClock::now() + kTimeToReport;
    std::string text;
    while (text.size() < kLongestOutput) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - HostClock::now()).count();
      pollfd waiting{.fd = process_.output(), .events = POLLIN, .revents = 0};
      if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0)
        throw SetupError(fmt::format("no report within {} s", kTimeToReport.count()));
      std::array<char, 4096> bytes{};
      const ssize_t got = ::read(process_.output(), bytes.data(), bytes.size());
      if (got <= 0) break;
      text.append(bytes.data(), static_cast<size_t>(got));
      if (const auto found = find_report(text)) return *found;
    }
    throw SetupError(last_line(text));
  }

 private:
  static SpawnedProcess spawn(const HostEntry& host, bool here, const std::string& address,
                              const ProbeOptions& options, const std::string& secret) {
    std::vector<std::string> words = {here ? options.program : options.remote_program, "worker",
                                      "--probe", "--listen=" + address};
    if (options.quick) words.emplace_back("--quick");
    if (options.allow_public) words.emplace_back("--distributed-allow-public");
    SpawnOptions spawned{.pipe_output = true};
    if (here) {
      spawned.words = std::move(words);
      spawned.environment = {{kClusterSecretVariable, secret}};
    } else {
      spawned.words = ssh_words(host.ssh, words, {});
    }
    return SpawnedProcess(spawned);
  }

  static std::optional<ProbeReport> find_report(const std::string& text) {
    size_t begin = 0;
    for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
      if (auto report = parse_probe_line(text.substr(begin, end - begin))) return report;
      begin = end + 1;
    }
    return std::nullopt;
  }

  static std::string last_line(std::string text) {
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
    std::string line;
    append_log_text(line, std::string_view(text).substr(text.rfind('\n') + 1));
    return line.empty() ? "octavo worker --probe ended without a report" : line;
  }

  SpawnedProcess process_;
};

HostFacts probe_host(const HostEntry& host, bool first, const std::string& address,
                     const ProbeOptions& options) {
  HostFacts facts{.name = host.ssh, .address = address};
  try {
    private_address_of(address, "--hosts", options.allow_public);
    const std::string secret = fresh_secret();
    RemoteProbe probe(host, first || host.is_local(), address, options, secret);
    facts.report = probe.report();
    if (!first) facts.link = measure_link(address, facts.report.port, secret);
  } catch (const SetupError& error) {
    facts.error = error.what();
  }
  return facts;
}

}  // namespace

std::vector<HostFacts> probe_hosts(const Hostfile& hosts, const ProbeOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);
  std::vector<HostFacts> facts;
  // One after the other: machines that are the same one would share its bandwidth.
  for (size_t rank = 0; rank < hosts.hosts.size(); ++rank) {
    const HostEntry& host = hosts.hosts[rank];
    if (options.progress) options.progress(host.ssh);
    facts.push_back(probe_host(host, rank == 0, address_of(hosts, rank, "--hosts"), options));
  }
  return facts;
}

}  // namespace octavo
