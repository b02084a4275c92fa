#include "cli/distributed/cluster_start.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "base/system_memory.h"
#include "base/units.h"
#include "cli/model_flags.h"
#include "cli/progress_bar.h"
#include "distributed/worker_channel.h"
#include "engine/run_worker.h"
#include "kernels/arithmetic.h"
#include "kernels/cpu/isa.h"

namespace octavo {
namespace {

// A rank is gone when several heartbeats in a row are missing.
std::chrono::milliseconds heartbeat_of(std::chrono::milliseconds deadline) {
  return std::min(std::chrono::milliseconds(1000), deadline / 4);
}

// The models are compared when rank 0 sends its plan.
WorkerHello hello_of(int rank, const ModelFlags& flags) {
  return {.rank = rank,
          .version = OCTAVO_VERSION,
          .arithmetic = kArithmeticVersion,
          .isa = std::string(name_of(cpu::active_isa())),
          .memory_bytes = rank_memory(flags)};
}

std::string describe_worker(size_t rank, const WorkerHello& worker) {
  return fmt::format("rank {} has joined from {}: {}, {}", rank, worker.address, worker.isa,
                     format_bytes(worker.memory_bytes));
}

std::unique_ptr<WorkerChannel> join_rank_0(const WorkerSettings& settings,
                                           const ModelFlags& flags) {
  WorkerChannelOptions options{.host = settings.rank_0.host,
                               .port = settings.rank_0.port,
                               .secret = ClusterSecret(settings.secret),
                               .self = hello_of(settings.rank, flags),
                               .allow_public = settings.allow_public};
  options.link_host = settings.listen.host;
  options.link_port = settings.listen.port;
  options.connect_deadline = settings.connect_timeout;
  options.heartbeat = heartbeat_of(settings.deadline);
  options.silence = settings.deadline;
  return WorkerChannel::connect(std::move(options));
}

}  // namespace

uint64_t rank_memory(const ModelFlags& flags) {
  auto bytes =
      static_cast<uint64_t>(static_cast<double>(usable_memory_bytes()) * flags.memory_fraction);
  if (!flags.memory_limit.empty())
    bytes = std::min(bytes, parse_bytes(flags.memory_limit, "--memory-limit"));
  return bytes;
}

std::unique_ptr<Cluster> form_cluster(const ClusterSettings& settings, const ModelFlags& flags,
                                      const std::function<void(const std::string&)>& say) {
  if (settings.ranks < 2) return nullptr;
  const bool allow_public = flags.cluster.link.allow_public;
  TcpListener listener(settings.listen.host, settings.listen.port, allow_public);
  const int workers = settings.ranks - 1;
  say(
      fmt::format("waiting for {} worker{} at {}; start each with: octavo worker MODEL --connect "
                  "{} --rank {} --distributed-secret-file FILE",
                  workers, workers == 1 ? "" : "s", listener.address(), listener.address(),
                  workers == 1 ? "1" : fmt::format("1 to {}", workers)));
  ClusterOptions options{.size = settings.ranks,
                         .secret = ClusterSecret(settings.secret),
                         .self = hello_of(0, flags),
                         .allow_public = allow_public};
  options.heartbeat = heartbeat_of(settings.deadline);
  options.silence = settings.deadline;
  auto cluster = Cluster::accept(std::move(listener), std::move(options));
  for (size_t i = 0; i < cluster->workers().size(); ++i)
    say(describe_worker(i + 1, cluster->workers()[i]));
  return cluster;
}

void run_cluster_worker(const WorkerSettings& settings, const ModelFlags& flags) {
  const Checkpoint checkpoint = Checkpoint::open(flags.model);
  spdlog::info("rank {} connects to {}", settings.rank, settings.rank_0.text());
  const auto channel = join_rank_0(settings, flags);
  spdlog::info("rank {} of {} loads its part of the model", channel->rank(), channel->size());
  std::optional<ProgressBar> bar(std::in_place, "Loading");
  try {
    run_worker(checkpoint, flags.engine_options(), *channel, [&](uint64_t done, uint64_t total) {
      if (bar) bar->update(done, total);
      if (done == total) bar.reset();
    });
  } catch (const ClusterError& error) {
    throw SetupError(error.what());
  } catch (const LinkError& error) {
    throw SetupError(channel->failure().value_or(error.what()));
  }
}

}  // namespace octavo
