// octavo launch - starts all ranks of a cluster, here and over ssh, and ends them together.
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): POSIX
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/secret_file.h"
#include "base/topology/thread_plan.h"
#include "cli/commands.h"
#include "cli/distributed/free_port.h"
#include "cli/distributed/hostfile.h"
#include "cli/distributed/launch_plan.h"
#include "cli/distributed/launch_state.h"
#include "cli/distributed/line_prefix.h"
#include "cli/distributed/spawned_process.h"
#include "cli/parse/number_check.h"
#include "cli/serve_flags.h"
#include "text/helper_jobs.h"

namespace octavo {
namespace {

using LaunchClock = std::chrono::steady_clock;

struct LaunchFlags {
  ServeFlags serve;
  std::string hosts;
  int local_ranks = 0;
  std::string remote_program = "octavo";
};

// Writes a byte for every signal, so that poll() sees them.
int signal_pipe = -1;

void note_signal(int signal) {
  const int error = errno;
  const char byte = signal == SIGCHLD ? 'c' : 't';
  [[maybe_unused]] const ssize_t written = ::write(signal_pipe, &byte, 1);
  errno = error;
}

// Returns the end to read from.
int catch_signals() {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw SetupError("cannot create a pipe");
  signal_pipe = ends[1];
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  return ends[0];
}

// Runs the ranks until all have ended.
class Launch {
 public:
  Launch(const std::vector<RankCommand>& commands, const std::string& secret)
      : state_(static_cast<int>(commands.size())), signals_(catch_signals()) {
    // If one cannot be started, the destructors of the others kill them.
    for (const RankCommand& command : commands) start(command, secret);
  }

  int run() {
    while (!state_.all_ended()) {
      wait();
      for (Rank& rank : ranks_) note_end(rank);
      send(state_.due(LaunchClock::now()));
    }
    for (Rank& rank : ranks_) read_output(rank);
    if (state_.exit_status() != 0)
      fmt::print(stderr, "octavo: {}, so all ranks were ended\n",
                 state_.reason().empty() ? "the cluster was interrupted" : state_.reason());
    return state_.exit_status();
  }

 private:
  struct Rank {
    int number;
    SpawnedProcess process;
    LinePrefix output;
    bool ended = false;
  };

  void start(const RankCommand& command, const std::string& secret) {
    SpawnOptions options{.words = command.words, .environment = command.environment};
    // The output of rank 0 is that of a server.
    options.pipe_output = !ranks_.empty();
    if (!command.reads_secret) options.environment.emplace_back(kClusterSecretVariable, secret);
    ranks_.push_back({.number = static_cast<int>(ranks_.size()),
                      .process = SpawnedProcess(options),
                      .output = LinePrefix(fmt::format("[{}] ", command.name))});
    if (command.reads_secret) ranks_.back().process.write_input(secret + "\n");
  }

  // For a signal, output or the time of the next signal to send.
  void wait() {
    std::vector<pollfd> waiting = {{.fd = signals_, .events = POLLIN, .revents = 0}};
    for (const Rank& rank : ranks_)
      waiting.push_back({.fd = rank.process.output(), .events = POLLIN, .revents = 0});
    int timeout = -1;
    if (const auto next = state_.next()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(*next - LaunchClock::now()).count();
      timeout = static_cast<int>(std::clamp<int64_t>(left, 0, 60'000));
    }
    if (::poll(waiting.data(), waiting.size(), timeout) <= 0) return;
    if (waiting[0].revents != 0) read_signals();
    for (size_t i = 0; i < ranks_.size(); ++i)
      if (waiting[i + 1].revents != 0) read_output_once(ranks_[i]);
  }

  void read_signals() {
    std::array<char, 64> bytes{};
    const ssize_t got = ::read(signals_, bytes.data(), bytes.size());
    for (ssize_t i = 0; i < got; ++i)
      if (bytes[static_cast<size_t>(i)] == 't') send(state_.interrupted(LaunchClock::now()));
  }

  void note_end(Rank& rank) {
    if (rank.ended) return;
    const auto code = rank.process.exit_code();
    if (!code) return;
    rank.ended = true;
    state_.ended(rank.number, *code, LaunchClock::now());
  }

  // False at the end of the output.
  bool read_output_once(Rank& rank) {
    std::array<char, 16384> bytes{};
    const ssize_t got = ::read(rank.process.output(), bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) {
      rank.process.close_output();
      return false;
    }
    const std::string lines =
        rank.output.add(std::string_view(bytes.data(), static_cast<size_t>(got)));
    std::fwrite(lines.data(), 1, lines.size(), stderr);
    return true;
  }

  // What is left when the process has ended. A process that it started may still hold the pipe.
  void read_output(Rank& rank) {
    while (rank.process.output() >= 0) {
      pollfd waiting{.fd = rank.process.output(), .events = POLLIN, .revents = 0};
      if (::poll(&waiting, 1, 0) != 1 || !read_output_once(rank)) break;
    }
    const std::string rest = rank.output.rest();
    std::fwrite(rest.data(), 1, rest.size(), stderr);
  }

  void send(const std::vector<LaunchState::Signal>& signals) {
    for (const LaunchState::Signal& each : signals)
      ranks_[static_cast<size_t>(each.rank)].process.send_signal(each.signal);
  }

  std::vector<Rank> ranks_;
  LaunchState state_;
  int signals_;
};

// As given, except what the plan sets and what is already part of the others.
std::vector<GivenFlag> given_flags(const CLI::App& command) {
  constexpr std::array kOwn = {"--hosts",
                               "--remote-program",
                               "--config",
                               "--pipeline-parallel-size",
                               "--tensor-parallel-size",
                               "--distributed-listen"};
  std::vector<GivenFlag> flags;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string name = "--" + option->get_lnames().front();
    if (std::ranges::count(kOwn, name) > 0) continue;
    for (const std::string& value : option->results()) flags.emplace_back(name, value);
  }
  return flags;
}

bool flag_is_given(const std::vector<GivenFlag>& flags, std::string_view name) {
  return std::ranges::count(flags, name, &GivenFlag::first) > 0;
}

// All ranks are on one machine, so each takes its part of it.
void share_machine(std::vector<GivenFlag>& flags, int ranks, double memory_fraction) {
  if (!flag_is_given(flags, "--threads")) {
    const int threads = plan_threads().allowed_cores / ranks;
    flags.emplace_back("--threads", std::to_string(std::max(1, threads)));
  }
  if (!flag_is_given(flags, "--memory-fraction") && !flag_is_given(flags, "--memory-limit"))
    flags.emplace_back("--memory-fraction", fmt::format("{:.4f}", memory_fraction / ranks));
}

NetworkAddress listen_address(const LaunchFlags& flags, const Hostfile& hosts) {
  NetworkAddress address;
  if (flags.serve.model.cluster.listen.empty()) {
    address.host = address_of(hosts, 0, flags.hosts);
  } else {
    address = parse_network_address(flags.serve.model.cluster.listen, "--distributed-listen");
  }
  address.host = private_address_of(address.host, flags.hosts.empty() ? "-n" : "--hosts",
                                    flags.serve.model.cluster.link.allow_public);
  if (address.port != 0) return address;
  const auto port = free_port(address.host);
  if (!port)
    throw SetupError(fmt::format(
        "--hosts {}: {} is not an address of this machine; run octavo launch on the first host",
        flags.hosts, address.host));
  address.port = *port;
  return address;
}

std::string launch_secret(const LaunchFlags& flags) {
  const LinkFlags& link = flags.serve.model.cluster.link;
  if (!link.secret_file.empty() || std::getenv(kClusterSecretVariable) != nullptr)
    return link.read_secret();
  return fresh_secret();
}

void launch(const LaunchFlags& flags, const CLI::App& command) {
  if (flags.serve.models.size() != 1)
    throw SetupError("octavo launch serves one model; name exactly one");
  if (flags.hosts.empty() == (flags.local_ranks == 0))
    throw SetupError(
        "give --hosts FILE, or -n N to start N processes on this machine (octavo launch --help)");
  const bool all_here = flags.hosts.empty();
  LaunchSettings settings;
  settings.hosts = all_here ? local_hosts(flags.local_ranks) : read_hostfile(flags.hosts);
  const int ranks = static_cast<int>(settings.hosts.hosts.size());
  if (ranks < 2)
    throw SetupError(fmt::format("{}: one rank needs no cluster; use octavo serve",
                                 all_here ? "-n 1" : flags.hosts));
  settings.model = flags.serve.models.front();
  settings.flags = given_flags(command);
  std::erase_if(settings.flags,
                [](const GivenFlag& flag) { return flag.first == "--distributed-secret-file"; });
  flags.serve.model.cluster.check_sizes();
  if (command.get_option("--tensor-parallel-size")->count() > 0)
    settings.tensor_parallel_size = flags.serve.model.cluster.tensor_parallel_size;
  if (all_here) share_machine(settings.flags, ranks, flags.serve.model.memory_fraction);
  settings.program = own_program();
  settings.remote_program = flags.remote_program;
  settings.listen = listen_address(flags, settings.hosts);
  const std::string secret = launch_secret(flags);
  const int status = Launch(plan_launch(settings), secret).run();
  if (status != 0) throw CLI::RuntimeError(status);
}

// The flags of octavo serve are accepted, but --help would be too long with them.
void hide_serve_flags(CLI::App& command) {
  constexpr std::array kShown = {"help", "tensor-parallel-size"};
  for (CLI::Option* option : command.get_options())
    if (!option->get_lnames().empty() &&
        std::ranges::count(kShown, option->get_lnames().front()) == 0)
      option->group("");
}

}  // namespace

void add_launch_command(CLI::App& app) {
  auto flags = std::make_shared<LaunchFlags>();
  CLI::App* command = app.add_subcommand(
      "launch",
      "Serve one model that is divided over several machines: starts octavo serve here and octavo\n"
      "worker on the other machines over ssh, and ends all of them together.\n\n"
      "  octavo launch --hosts hosts.json MODEL\n"
      "  octavo launch -n 2 MODEL          two processes on this machine, to try it\n"
      "  octavo launch --hosts hosts.json --tensor-parallel-size 2 MODEL\n\n"
      "hosts.json is a hostfile of mlx.launch. The first host is this machine, and its first\n"
      "address is where the others connect:\n"
      "  {\"hosts\": [{\"ssh\": \"mac-1\", \"ips\": [\"10.0.0.1\"]},\n"
      "             {\"ssh\": \"mac-2\", \"ips\": [\"10.0.0.2\"]}]}\n\n"
      "octavo and the model must be on every machine, the model under the same name or path. ssh\n"
      "must not ask for a password. All flags of octavo serve may follow. SIGTERM or Ctrl-C "
      "drains\n"
      "the server and ends all ranks; if one rank ends, all end, with a status other than 0.");
  flags->serve.add_to(*command);
  hide_serve_flags(*command);
  command->add_option("--hosts,--hostfile", flags->hosts, "Hostfile with the machines, by rank")
      ->type_name("FILE");
  command
      ->add_option("-n", flags->local_ranks,
                   "Start this many ranks on this machine instead; each gets its part of the cores "
                   "and of the memory")
      ->transform(whole_number(2, 64))
      ->type_name("INT");
  command
      ->add_option("--remote-program", flags->remote_program,
                   "Name or path of octavo on the other machines")
      ->capture_default_str()
      ->type_name("PATH");
  command->callback([flags, command] { launch(*flags, *command); });
}

}  // namespace octavo
