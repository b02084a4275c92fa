#include "distributed/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "distributed/cluster_messages.h"
#include "distributed/cluster_state.h"
#include "distributed/handshake.h"
#include "distributed/tcp_links.h"

namespace octavo {
namespace {

// Of pages in a worker's queue.
constexpr size_t kCopyWindow = 64u << 20;

}  // namespace

std::unique_ptr<Cluster> Cluster::accept(TcpListener listener, ClusterOptions options) {
  OCTAVO_CHECK(options.size >= 2);
  std::vector<JoinedWorker> workers = Lobby(listener, options).wait();
  Welcome welcome{.size = options.size, .session = fresh_session(), .addresses = {""}};
  for (const JoinedWorker& worker : workers) welcome.addresses.push_back(worker.hello.address);
  for (JoinedWorker& worker : workers) {
    welcome.rank = worker.hello.rank;
    try {
      send_frame(worker.connection, FrameType::kWelcome, encode(welcome),
                 SocketClock::now() + options.handshake_deadline);
    } catch (const ClusterError& error) {
      throw SetupError(fmt::format("rank {} ({}): {}", welcome.rank, worker.host, error.what()));
    }
  }
  return std::unique_ptr<Cluster>(new Cluster(
      std::make_unique<State>(std::move(workers), std::move(options), welcome.session)));
}

Cluster::Cluster(std::unique_ptr<State> state) : state_(std::move(state)) {}

Cluster::~Cluster() = default;

int Cluster::size() const { return state_->options_.size; }

const std::vector<WorkerHello>& Cluster::workers() const { return state_->hellos_; }

void Cluster::set_limits(const StepLimits& limits) {
  state_->vocab_ = limits.vocab;
  state_->hidden_ = limits.hidden;
}

std::unique_ptr<TensorLinks> Cluster::make_links(bool all_pairs) {
  state_->failure_.throw_if_failed();
  TcpLinksOptions options{.rank = 0,
                          .size = size(),
                          .addresses = {""},
                          .secret = state_->options_.secret,
                          .session = state_->session_,
                          .all_pairs = all_pairs,
                          .allow_public = state_->options_.allow_public,
                          .deadline = state_->options_.link_deadline,
                          .stop = state_->links_stop_};
  for (const WorkerHello& hello : workers()) options.addresses.push_back(hello.address);
  return make_tcp_links(std::move(options));
}

void Cluster::send_setup(int rank, const std::string& json) {
  state_->send(state_->peer(rank), FrameType::kSetup, encode_text(json));
}

std::vector<std::string> Cluster::wait_ready() {
  State& state = *state_;
  std::unique_lock lock(state.mutex_);
  const auto has_error = [](const auto& peer) { return peer->error.has_value(); };
  state.changed_.wait(lock, [&] {
    return state.failed_ || std::ranges::any_of(state.peers_, has_error) ||
           std::ranges::all_of(state.peers_,
                               [](const auto& peer) { return peer->ready.has_value(); });
  });
  // Before the failure, which a worker that cannot start causes when it exits.
  for (const auto& peer : state.peers_)
    if (peer->error) throw SetupError(fmt::format("{}: {}", peer->name, *peer->error));
  state.failure_.throw_if_failed();
  std::vector<std::string> ready;
  for (const auto& peer : state.peers_) ready.push_back(*peer->ready);
  return ready;
}

void Cluster::announce(const StepMessage& step, StepPart of_last) {
  State& state = *state_;
  const bool draws = of_last == StepPart::kDraws;
  {
    const std::lock_guard lock(state.mutex_);
    OCTAVO_CHECK(step.number == state.next_step_);
    ++state.next_step_;
    state.steps_.emplace(step.number,
                         State::Step{.shape = ResultShape(draws ? step.batch : Batch()),
                                     .missing = static_cast<int>(state.peers_.size()),
                                     .message = {.number = step.number}});
    for (const auto& peer : state.peers_) State::owe(*peer);
  }
  const std::vector<std::byte> last = encode(step, of_last);
  const std::vector<std::byte> layers =
      draws && size() > 2 ? encode(step, StepPart::kLayers) : std::vector<std::byte>();
  for (const auto& peer : state.peers_)
    state.send(*peer, FrameType::kStep, !draws || state.is_last(*peer) ? last : layers);
  if (draws) state.masks_->add(step);
}

ResultMessage Cluster::wait_result(uint64_t number) {
  State& state = *state_;
  std::unique_lock lock(state.mutex_);
  const auto step = state.steps_.find(number);
  OCTAVO_CHECK(step != state.steps_.end());
  state.wait_until(lock, [&] { return step->second.missing == 0; });
  ResultMessage message = std::move(step->second.message);
  state.steps_.erase(step);
  if (message.error) message.result = {};
  return message;
}

void Cluster::drop() {
  State& state = *state_;
  state.masks_->drop();
  {
    const std::lock_guard lock(state.mutex_);
    state.steps_.clear();
    state.next_step_ = 0;
    for (const auto& peer : state.peers_) {
      peer->dropping = true;
      peer->results = 0;
      State::owe(*peer);
    }
  }
  for (const auto& peer : state.peers_) state.send(*peer, FrameType::kDrop, {});
  std::unique_lock lock(state.mutex_);
  state.wait_until(lock, [&] {
    return std::ranges::none_of(state.peers_, [](const auto& peer) { return peer->dropping; });
  });
}

void Cluster::copy_out(int rank, PageId page, std::span<std::byte> to) {
  State& state = *state_;
  State::Peer& peer = state.peer(rank);
  {
    const std::lock_guard lock(state.mutex_);
    peer.wants_page = true;
    peer.page.reset();
    State::owe(peer);
  }
  state.send(peer, FrameType::kCopyOut, encode(PageRequest{.page = page, .bytes = to.size()}));
  std::vector<std::byte> payload;
  {
    std::unique_lock lock(state.mutex_);
    state.wait_until(lock, [&] { return peer.page.has_value(); });
    payload = std::move(*peer.page);
    peer.page.reset();
    peer.wants_page = false;
  }
  try {
    const PageBytes got = decode_page(payload);
    if (got.page != page || got.bytes.size() != to.size())
      throw WireError(fmt::format("it sent {} bytes of page {} instead of {} of page {}",
                                  got.bytes.size(), got.page, to.size(), page));
    std::ranges::copy(got.bytes, to.begin());
  } catch (const WireError& error) {
    state.fail(fmt::format("{}: {}", peer.name, error.what()));
    state.failure_.throw_if_failed();
  }
}

void Cluster::copy_in(int rank, PageId page, std::span<const std::byte> from) {
  State& state = *state_;
  State::Peer& peer = state.peer(rank);
  {
    std::unique_lock lock(state.mutex_);
    state.wait_until(
        lock, [&] { return peer.copying == 0 || peer.copying + from.size() <= kCopyWindow; });
    peer.copying += from.size();
    State::owe(peer);
  }
  state.send(peer, FrameType::kCopyIn, encode_page_id(page), from);
}

std::optional<std::string> Cluster::failure() const { return state_->failure_.get(); }

void Cluster::on_failure(std::function<void(const std::string&)> call) {
  state_->failure_.on_failure(std::move(call));
}

void Cluster::shutdown() { state_->shut_down(); }

}  // namespace octavo
