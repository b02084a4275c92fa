// octavo worker - a rank of a cluster other than the first: computes a part of a model.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/compute_pool.h"
#include "base/error.h"
#include "base/log.h"
#include "bench/step_limits.h"
#include "cli/commands.h"
#include "cli/distributed/cluster_start.h"
#include "cli/distributed/host_checks.h"
#include "cli/distributed/link_probe.h"
#include "cli/model_flags.h"
#include "cli/option_group.h"
#include "cli/parse/number_check.h"
#include "cli/parse/usage_error.h"
#include "kernels/arithmetic.h"
#include "kernels/cpu/isa.h"
#include "kernels/runtime/device.h"

namespace octavo {
namespace {

struct WorkerFlags {
  ModelFlags model;
  LinkFlags link;
  std::string connect;
  std::string listen;
  std::optional<int> rank;
  double connect_timeout = 600;
  bool probe = false;
  bool quick = false;
};

// "10.0.0.2", "10.0.0.2:7000", "fd00::2", "[fd00::2]:7000"; without a port, 0.
NetworkAddress listen_of(const WorkerFlags& flags) {
  const std::string& text = flags.listen;
  const bool has_port = text.starts_with("[") || std::ranges::count(text, ':') == 1;
  NetworkAddress address{.host = text};
  if (has_port) address = parse_network_address(text, "--listen");
  address.host = private_address_of(address.host, "--listen", flags.link.allow_public);
  return address;
}

// Prints one line, answers measurements, and ends when stdin does.
void run_probe(const WorkerFlags& flags) {
  if (flags.listen.empty())
    throw UsageError("octavo worker --probe: --listen is missing, the address of this machine");
  const std::string secret = flags.link.read_secret();
  const NetworkAddress address = listen_of(flags);
  std::signal(SIGPIPE, SIG_IGN);
  ProbeServer server(address.host, address.port, secret);
  set_compute_options(flags.model.compute_options());
  use_device(parse_device(flags.model.device, "--device"));
  ProbeReport report{.version = OCTAVO_VERSION,
                     .arithmetic = arithmetic_name(),
                     .isa = std::string(name_of(cpu::active_isa())),
                     .memory_bytes = rank_memory(flags.model),
                     .port = server.port()};
  if (!flags.quick)
    report.read_bytes_per_second = bench::measure_step_limits(DType::kBFloat16).read_gbps * 1e9;
  fmt::print("{}\n", probe_line(report));
  std::fflush(stdout);
  server.run(STDIN_FILENO);
}

void run_worker_command(WorkerFlags flags) {
  if (flags.probe) return run_probe(flags);
  const auto require = [](bool given, const char* what) {
    if (!given)
      throw UsageError(fmt::format("octavo worker: {}; octavo worker --help has an example", what));
  };
  require(!flags.model.model.empty(), "MODEL is missing");
  require(!flags.connect.empty(), "--connect HOST:PORT is missing, the address of rank 0");
  require(flags.rank.has_value(), "--rank is missing, a number from 1");
  WorkerSettings settings;
  settings.rank = *flags.rank;
  settings.rank_0 = parse_network_address(flags.connect, "--connect");
  settings.deadline = flags.link.deadline();
  settings.allow_public = flags.link.allow_public;
  settings.rank_0.host =
      private_address_of(settings.rank_0.host, "--connect", flags.link.allow_public);
  if (!flags.listen.empty()) settings.listen = listen_of(flags);
  settings.connect_timeout =
      std::chrono::milliseconds(static_cast<int64_t>(flags.connect_timeout * 1000));
  settings.secret = flags.link.read_secret();
  std::signal(SIGPIPE, SIG_IGN);
  init_server_logging(LogFormat::kText);
  flags.model.find();
  set_compute_options(flags.model.compute_options());
  run_cluster_worker(settings, flags.model);
  spdlog::info("rank 0 has ended the cluster");
  flush_logging();
}

void add_worker_options(CLI::App& command, WorkerFlags& flags) {
  const OptionGroup option{command, "Several machines"};
  option
      .without_default("--connect", flags.connect,
                       "Address that rank 0 prints, or was given with --distributed-listen")
      ->type_name("HOST:PORT");
  option
      .without_default(
          "--rank", flags.rank,
          "Number of this rank, from 1; with --pipeline-parallel-size, ranks have the layers "
          "in this order")
      ->transform(whole_number(1, 63))
      ->type_name("INT");
  option
      .without_default("--listen", flags.listen,
                       "Address of this machine for the other ranks (default: the one from which "
                       "it reaches rank 0, and a free port)")
      ->type_name("HOST[:PORT]");
  option("--connect-timeout", flags.connect_timeout, "Seconds to wait until rank 0 listens")
      ->transform(real_number(0, true));
  flags.link.add_to(command);
  command
      .add_flag("--probe", flags.probe,
                "Load nothing: print what this machine is and answer the measurements of octavo "
                "doctor --hosts at --listen, until stdin ends")
      ->group("Several machines");
  command.add_flag("--quick", flags.quick)->group("");  // hidden: set by octavo doctor
}

}  // namespace

void add_worker_command(CLI::App& app) {
  auto flags = std::make_shared<WorkerFlags>();
  CLI::App* command = app.add_subcommand(
      "worker",
      "Compute a part of a model for octavo serve on another machine.\n\n"
      "On the first machine, here 10.0.0.1:\n"
      "  openssl rand -hex 32 > secret\n"
      "  octavo serve MODEL --pipeline-parallel-size 2 --distributed-listen 10.0.0.1:7000 \\\n"
      "    --distributed-secret-file secret\n"
      "On the second one, with the same model and a copy of the secret:\n"
      "  octavo worker MODEL --connect 10.0.0.1:7000 --rank 1 --distributed-secret-file secret\n\n"
      "With --tensor-parallel-size, which divides matrices instead of layers, the second command "
      "is\n"
      "the same. octavo launch runs both. Either may be started first. Exits with status 0 when\n"
      "rank 0 has ended the cluster, and 1 if it cannot join or rank 0 stops answering.");
  flags->model.add_worker_flags_to(*command);
  add_worker_options(*command, *flags);
  command->callback([flags] { run_worker_command(*flags); });
}

}  // namespace octavo
