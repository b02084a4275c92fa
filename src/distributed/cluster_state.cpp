#include "distributed/cluster_state.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/thread_name.h"
#include "distributed/cluster_messages.h"

namespace octavo {
namespace {

constexpr std::chrono::milliseconds kCloseTime{3'000};  // for workers to end after a shutdown

// Does not wait for a worker that takes nothing.
void send_shutdown(ControlConnection& connection) {
  constexpr int kAttempts = 20;
  try {
    for (int i = 0; i < kAttempts && !connection.send_if_idle(FrameType::kShutdown, {}); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  } catch (const ClusterError&) {
    // It is gone already.
  }
}

double seconds_of(SocketClock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Cluster::State::State(std::vector<JoinedWorker> workers, ClusterOptions options,
                      std::string session)
    : options_(std::move(options)), session_(std::move(session)), vocab_(StepLimits{}.vocab) {
  for (JoinedWorker& worker : workers) {
    auto peer = std::make_unique<Peer>();
    peer->rank = worker.hello.rank;
    peer->name = fmt::format("rank {} ({})", worker.hello.rank, worker.host);
    peer->connection =
        std::make_unique<ControlConnection>(std::move(worker.connection), options_.silence);
    hellos_.push_back(std::move(worker.hello));
    peers_.push_back(std::move(peer));
  }
  failure_.on_failure([this](const std::string& why) { tell_all(why); });
  Peer& last = *peers_.back();
  masks_ = std::make_unique<MaskSender>([this, &last](const MaskMessage& message) {
    try {
      send(last, FrameType::kMask, encode(message));
    } catch (const ClusterError&) {
      // The cluster has failed; other threads report it.
    }
  });
  reader_ = std::thread([this] { read_all(); });
  heartbeat_ = std::make_unique<Ticker>("cluster-beat", options_.heartbeat, [this] { beat(); });
}

Cluster::State::~State() { shut_down(); }

void Cluster::State::send(Peer& peer, FrameType type, std::span<const std::byte> payload,
                          std::span<const std::byte> more) {
  failure_.throw_if_failed();
  try {
    peer.connection->send(type, payload, more);
  } catch (const ClusterError& error) {
    fail(fmt::format("{}: {}", peer.name, error.what()));
    failure_.throw_if_failed();
  }
}

void Cluster::State::fail(const std::string& why) { failure_.fail(why); }

// The first callback of a failure: wakes all threads and tells the workers.
void Cluster::State::tell_all(const std::string& why) {
  failed_ = true;
  links_stop_->stop();
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  const std::vector<std::byte> text = encode_text(std::string_view(why).substr(0, 2000));
  for (const auto& peer : peers_) {
    try {
      peer->connection->send_if_idle(FrameType::kError, text);
    } catch (const ClusterError&) {
      // It is gone already.
    }
    peer->connection->end_sending();  // ends blocked sends too
  }
}

void Cluster::State::owe(Peer& peer) {
  if (peer.owed++ == 0) peer.owing_since = SocketClock::now();
}

void Cluster::State::shut_down() {
  if (closing_.exchange(true)) return;
  for (const auto& peer : peers_) {
    if (!failed_) send_shutdown(*peer->connection);
    peer->connection->end_sending();
  }
  if (!failed_) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kCloseTime, [&] {
      return failed_ || std::ranges::all_of(peers_, [](const auto& peer) { return peer->closed; });
    });
  }
  links_stop_->stop();
  stopping_ = true;
  wake_.stop();
  heartbeat_.reset();
  masks_.reset();
  reader_.join();
}

void Cluster::State::beat() {
  if (closing_ || failed_) return;
  const auto age = options_.progress_age ? options_.progress_age() : std::chrono::milliseconds(0);
  for (const auto& peer : peers_) {
    try {
      peer->connection->send_if_idle(FrameType::kHeartbeat, encode_heartbeat(age));
    } catch (const ClusterError& error) {
      if (!closing_) fail(fmt::format("{}: {}", peer->name, error.what()));
    }
  }
}

void Cluster::State::read_all() {
  name_this_thread("cluster-reader");
  std::vector<bool> readable(peers_.size());
  while (!stopping_ && !failed_) {
    wait_for_bytes(readable);
    for (size_t i = 0; i < peers_.size(); ++i)
      if (readable[i]) read_from(*peers_[i]);
    check_peers();
  }
}

void Cluster::State::wait_for_bytes(std::vector<bool>& readable) {
  std::vector<pollfd> waits = {{wake_.descriptor(), POLLIN, 0}};
  for (const auto& peer : peers_)
    waits.push_back({peer->closed ? -1 : peer->connection->descriptor(), POLLIN, 0});
  const auto tick = std::clamp<int64_t>(options_.silence.count() / 10, 10, 500);
  ::poll(waits.data(), static_cast<nfds_t>(waits.size()), static_cast<int>(tick));
  for (size_t i = 0; i < peers_.size(); ++i) readable[i] = waits[i + 1].revents != 0;
}

void Cluster::State::read_from(Peer& peer) {
  std::string why;
  try {
    for (Frame& frame : peer.connection->receive()) handle(peer, std::move(frame));
    return;
  } catch (const std::exception& error) {
    why = error.what();
  }
  {
    const std::lock_guard lock(mutex_);
    if (peer.error) why = *peer.error;
    if (closing_) {
      peer.closed = true;
      changed_.notify_all();
      return;
    }
  }
  fail(fmt::format("{}: {}", peer.name, why));
}

void Cluster::State::handle(Peer& peer, Frame frame) {
  if (failed_) return;  // such as the errors of workers that were told of it
  switch (frame.type) {
    case FrameType::kHeartbeat: {
      const auto age = decode_heartbeat(frame.payload);
      const std::lock_guard lock(mutex_);
      peer.age = age;
      return;
    }
    case FrameType::kResult:
      return take_result(peer, decode_result(frame.payload));
    case FrameType::kTaken:
      return take_taken(peer, decode_taken(frame.payload));
    case FrameType::kReady:
    case FrameType::kError: {
      std::string text = decode_text(frame.payload);
      const std::lock_guard lock(mutex_);
      (frame.type == FrameType::kReady ? peer.ready : peer.error) = std::move(text);
      changed_.notify_all();
      if (peer.error && peer.ready) throw ClusterError(*peer.error);
      return;
    }
    case FrameType::kDropped: {
      const std::lock_guard lock(mutex_);
      if (!peer.dropping) throw WireError("it acknowledges a drop that was not announced");
      peer.dropping = false;
      answered(peer);
      peer.owed = 0;
      return;
    }
    case FrameType::kPage: {
      const std::lock_guard lock(mutex_);
      if (!peer.wants_page || peer.page) throw WireError("it sends a page that is not wanted");
      peer.page = std::move(frame.payload);
      answered(peer);
      return;
    }
    default:
      throw WireError(
          fmt::format("a message of type {} is not for rank 0", static_cast<int>(frame.type)));
  }
}

// Requires the lock.
void Cluster::State::answered(Peer& peer) {
  peer.owed = std::max(0, peer.owed - 1);
  peer.owing_since = SocketClock::now();
  changed_.notify_all();
}

void Cluster::State::take_taken(Peer& peer, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > peer.copying) throw WireError("it has taken more bytes than it was sent");
  peer.copying -= static_cast<size_t>(bytes);
  answered(peer);
}

void Cluster::State::take_result(Peer& peer, ResultMessage message) {
  const std::lock_guard lock(mutex_);
  if (peer.dropping) return;  // of a step before the drop
  const auto found = steps_.find(message.number);
  if (found == steps_.end() || message.number != peer.results)
    throw WireError(fmt::format("the result of step {} was not expected", message.number));
  Step& step = found->second;
  if (message.error) {
    if (step.failed_rank == 0 || peer.rank < step.failed_rank) {
      step.failed_rank = peer.rank;
      step.message.error = fmt::format("{}: {}", peer.name, *message.error);
    }
  } else if (is_last(peer)) {
    step.shape.check(message.result, vocab_, hidden_);
    step.message.result = std::move(message.result);
  }
  ++peer.results;
  --step.missing;
  answered(peer);
}

void Cluster::State::check_peers() {
  if (closing_ || failed_) return;
  const auto now = SocketClock::now();
  for (const auto& peer : peers_) {
    const auto silent = now - peer->connection->heard();
    if (silent > options_.silence)
      return fail(fmt::format("{} does not answer: nothing was received from it for {:.1f} s",
                              peer->name, seconds_of(silent)));
  }
  if (const auto stall = find_stall()) fail(*stall);
}

// Ranks after one that hangs wait for it, so the first one that makes no progress is named.
std::optional<std::string> Cluster::State::find_stall() {
  const std::lock_guard lock(mutex_);
  const auto now = SocketClock::now();
  const auto stalls = [&](const auto& peer, auto limit) {
    return peer->owed > 0 && now - peer->owing_since > limit && peer->age > limit;
  };
  if (std::ranges::none_of(peers_, [&](const auto& p) { return stalls(p, options_.stall); }))
    return std::nullopt;
  const auto first =
      std::ranges::find_if(peers_, [&](const auto& p) { return stalls(p, options_.stall / 2); });
  return fmt::format(
      "{} hangs: it has computed nothing for {:.1f} s", (*first)->name,
      seconds_of(std::min<SocketClock::duration>((*first)->age, now - (*first)->owing_since)));
}

}  // namespace octavo
