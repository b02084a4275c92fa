#include "distributed/lobby.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "distributed/frame.h"
#include "distributed/handshake.h"
#include "distributed/socket_address.h"

namespace octavo {
namespace {

constexpr size_t kMostHandshakes = 16;  // at a time; further connections wait
constexpr int kMostRefusalLines = 20;

std::string name_of(const JoinedWorker& worker) {
  return worker.hello.rank == 0 ? fmt::format("a worker ({})", worker.host)
                                : fmt::format("rank {} ({})", worker.hello.rank, worker.host);
}

bool has_left(const JoinedWorker& worker) {
  pollfd wait = {worker.connection.descriptor(), POLLIN, 0};
  if (::poll(&wait, 1, 0) <= 0) return false;
  spdlog::warn("{} left before all ranks had joined", name_of(worker));
  return true;
}

}  // namespace

Lobby::Lobby(TcpListener& listener, const ClusterOptions& options)
    : listener_(listener),
      options_(options),
      end_(SocketClock::now() + options.join_deadline),
      seats_(static_cast<size_t>(options.size - 1)) {}

Lobby::~Lobby() {
  stop_->stop();
  reap(true);
}

std::vector<JoinedWorker> Lobby::wait() {
  try {
    wait_for_all();
  } catch (const SetupError& error) {
    for (auto& worker : seats_)
      if (worker) send_refusal(worker->connection, error.what());
    for (auto& worker : unranked_) send_refusal(worker.connection, error.what());
    throw;
  }
  rank_unranked();
  std::vector<JoinedWorker> workers;
  for (auto& worker : seats_) workers.push_back(std::move(*worker));
  return workers;
}

size_t Lobby::joined() const {
  const auto seated = std::ranges::count_if(seats_, [](const auto& s) { return s.has_value(); });
  return static_cast<size_t>(seated) + unranked_.size();
}

void Lobby::rank_unranked() {
  for (JoinedWorker& worker : unranked_) {
    const auto seat = std::ranges::find_if(seats_, [](const auto& s) { return !s.has_value(); });
    worker.hello.rank = static_cast<int>(seat - seats_.begin()) + 1;
    seat->emplace(std::move(worker));
  }
}

void Lobby::wait_for_all() {
  while (joined() < seats_.size()) {
    if (options_.cancelled && options_.cancelled())
      throw SetupError(fmt::format("stopped while waiting for {}", missing()));
    if (SocketClock::now() >= end_)
      throw SetupError(fmt::format("{} did not join within {} s; workers connect to {}", missing(),
                                   options_.join_deadline.count() / 1000, listener_.address()));
    wait_for_event();
    reap(false);
    drop_gone();
    if (handshakes_.size() < kMostHandshakes)
      if (auto connection = listener_.accept(SocketClock::now()))
        shake_hands(std::move(*connection));
    seat_arrived();
  }
}

void Lobby::wait_for_event() {
  std::vector<pollfd> waits;
  if (handshakes_.size() < kMostHandshakes) waits.push_back({listener_.descriptor(), POLLIN, 0});
  for (const auto& worker : seats_)
    if (worker) waits.push_back({worker->connection.descriptor(), POLLIN, 0});
  for (const auto& worker : unranked_) waits.push_back({worker.connection.descriptor(), POLLIN, 0});
  ::poll(waits.data(), static_cast<nfds_t>(waits.size()), handshakes_.empty() ? 200 : 10);
}

void Lobby::shake_hands(TcpConnection connection) {
  Handshake& handshake = handshakes_.emplace_back();
  handshake.thread = std::thread([this, &handshake, peer = std::move(connection)]() mutable {
    const std::string host = peer.peer_host();
    try {
      const auto deadline = SocketClock::now() + options_.handshake_deadline;
      peer.set_stop(stop_);
      accept_as_server(peer, options_.secret, {.kind = ConnectionKind::kControl}, deadline);
      WorkerHello hello = decode_hello(receive_frame(peer, FrameType::kHello, deadline).payload);
      split_address(hello.address);
      peer.set_stop(nullptr);
      const std::lock_guard lock(mutex_);
      arrived_.push_back({std::move(hello), host, std::move(peer)});
    } catch (const std::exception& error) {
      note_refusal(host, error.what());
    }
    handshake.done = true;
  });
}

void Lobby::reap(bool all) {
  std::erase_if(handshakes_, [&](Handshake& handshake) {
    if (!all && !handshake.done) return false;
    handshake.thread.join();
    return true;
  });
}

void Lobby::seat_arrived() {
  std::vector<JoinedWorker> arrived;
  {
    const std::lock_guard lock(mutex_);
    arrived = std::exchange(arrived_, {});
  }
  for (JoinedWorker& worker : arrived) seat(std::move(worker));
}

void Lobby::seat(JoinedWorker worker) {
  const auto refuse = [&](const std::string& why) {
    send_refusal(worker.connection, why);
    note_refusal(worker.host, why);
  };
  const int rank = worker.hello.rank;
  if (rank >= options_.size)
    return refuse(fmt::format("rank {} is not below the number of ranks, {}", rank, options_.size));
  if (joined() == seats_.size()) return refuse("all ranks have joined already");
  if (rank > 0 && seats_[static_cast<size_t>(rank - 1)])
    return refuse(
        fmt::format("{} has joined already", name_of(*seats_[static_cast<size_t>(rank - 1)])));
  try {
    check_fit(worker);
  } catch (const SetupError& error) {
    send_refusal(worker.connection, error.what());
    throw;
  }
  spdlog::info("{} joined: {}, {:.1f} GiB of memory", name_of(worker), worker.hello.isa,
               static_cast<double>(worker.hello.memory_bytes) / (1 << 30));
  if (rank == 0) {
    unranked_.push_back(std::move(worker));
  } else {
    seats_[static_cast<size_t>(rank - 1)].emplace(std::move(worker));
  }
}

void Lobby::check_fit(const JoinedWorker& worker) const {
  const WorkerHello& own = options_.self;
  const WorkerHello& hello = worker.hello;
  const std::string name = name_of(worker);
  if (hello.version != own.version)
    throw SetupError(
        fmt::format("{} runs Octavo {}, and rank 0 runs {}; install the same version on all "
                    "machines",
                    name, hello.version, own.version));
  if (hello.arithmetic != own.arithmetic)
    throw SetupError(fmt::format(
        "{} has version {} of the arithmetic, and rank 0 has {}; install the same version of "
        "Octavo on all machines",
        name, hello.arithmetic, own.arithmetic));
  if (!hello.model_digest.empty() && !own.model_digest.empty() &&
      hello.model_digest != own.model_digest)
    throw SetupError(
        fmt::format("{} has another model than rank 0; copy the same files to all machines", name));
}

// Workers send nothing before they are welcomed, so an event is the end of the connection.
void Lobby::drop_gone() {
  for (auto& worker : seats_)
    if (worker && has_left(*worker)) worker.reset();
  std::erase_if(unranked_, has_left);
}

void Lobby::note_refusal(const std::string& host, const std::string& why) {
  if (refused_++ < kMostRefusalLines)
    spdlog::warn("a worker's connection from {} was refused: {}", host, why);
}

std::string Lobby::missing() const {
  std::vector<int> ranks;
  for (size_t i = 0; i < seats_.size(); ++i)
    if (!seats_[i]) ranks.push_back(static_cast<int>(i) + 1);
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

}  // namespace octavo
