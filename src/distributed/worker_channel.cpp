#include "distributed/worker_channel.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/error.h"
#include "distributed/handshake.h"
#include "distributed/socket_address.h"
#include "distributed/tcp_links.h"
#include "distributed/worker_state.h"

namespace octavo {
namespace {

constexpr std::chrono::milliseconds kAttempt{5'000};
constexpr std::chrono::milliseconds kPause{200};  // between attempts

void check_cancelled(const WorkerChannelOptions& options, const char* what) {
  if (options.cancelled && options.cancelled())
    throw SetupError(fmt::format("stopped while waiting for {}", what));
}

TcpConnection connect_to_rank_0(const WorkerChannelOptions& options) {
  const auto end = SocketClock::now() + options.connect_deadline;
  for (bool first = true;; first = false) {
    check_cancelled(options, "rank 0");
    try {
      return TcpConnection::connect(options.host, options.port,
                                    std::min(end, SocketClock::now() + kAttempt),
                                    options.allow_public);
    } catch (const ClusterError& error) {
      if (SocketClock::now() + kPause > end)
        throw SetupError(fmt::format("rank 0 was not reached within {} s: {}",
                                     options.connect_deadline.count() / 1000, error.what()));
      if (first) spdlog::info("waiting for rank 0: {}", error.what());
    }
    std::this_thread::sleep_for(kPause);
  }
}

Welcome wait_welcome(TcpConnection& connection, const WorkerChannelOptions& options) {
  const auto end = SocketClock::now() + options.join_deadline;
  pollfd wait = {connection.descriptor(), POLLIN, 0};
  while (::poll(&wait, 1, 200) <= 0) {
    check_cancelled(options, "the other ranks");
    if (SocketClock::now() >= end)
      throw ClusterError(fmt::format("the other ranks did not join within {} s",
                                     options.join_deadline.count() / 1000));
  }
  const Frame frame = receive_frame(connection, FrameType::kWelcome,
                                    SocketClock::now() + options.handshake_deadline);
  return decode_welcome(frame.payload);
}

}  // namespace

std::unique_ptr<WorkerChannel> WorkerChannel::connect(WorkerChannelOptions options) {
  const std::string target = join_address(options.host, options.port);
  TcpConnection connection = connect_to_rank_0(options);
  const std::string host = connection.local_host();
  TcpListener links(options.link_host.empty() ? host : options.link_host, options.link_port,
                    options.allow_public);
  try {
    const auto deadline = SocketClock::now() + options.handshake_deadline;
    open_as_client(connection, options.secret, {.kind = ConnectionKind::kControl}, deadline);
    options.self.address =
        options.link_host.empty() ? join_address(host, links.port()) : links.address();
    send_frame(connection, FrameType::kHello, encode(options.self), deadline);
    Welcome welcome = wait_welcome(connection, options);
    return std::unique_ptr<WorkerChannel>(new WorkerChannel(std::make_unique<State>(
        std::move(connection), std::move(links), std::move(options), std::move(welcome))));
  } catch (const ClusterError& error) {
    throw SetupError(
        fmt::format("cannot join the cluster of rank 0 at {}: {}", target, error.what()));
  }
}

WorkerChannel::WorkerChannel(std::unique_ptr<State> state) : state_(std::move(state)) {}

WorkerChannel::~WorkerChannel() = default;

int WorkerChannel::rank() const { return state_->welcome_.rank; }

int WorkerChannel::size() const { return state_->welcome_.size; }

std::string WorkerChannel::wait_setup() {
  std::unique_lock lock(state_->mutex_);
  state_->wait_until(lock, [&] { return state_->setup_.has_value(); });
  return *state_->setup_;
}

void WorkerChannel::set_limits(const StepLimits& limits) {
  const std::lock_guard lock(state_->mutex_);
  state_->limits_ = limits;
}

std::unique_ptr<TensorLinks> WorkerChannel::make_links(bool all_pairs) {
  state_->failure_.throw_if_failed();
  return make_tcp_links({.rank = rank(),
                         .size = size(),
                         .addresses = state_->welcome_.addresses,
                         .listener = &state_->links_,
                         .secret = state_->options_.secret,
                         .session = state_->welcome_.session,
                         .all_pairs = all_pairs,
                         .allow_public = state_->options_.allow_public,
                         .deadline = state_->options_.link_deadline,
                         .stop = state_->links_stop_});
}

void WorkerChannel::send_ready(const std::string& json) {
  state_->ready_ = true;
  state_->send(FrameType::kReady, encode_text(json));
}

void WorkerChannel::send_error(const std::string& text) {
  state_->send(FrameType::kError, encode_text(std::string_view(text).substr(0, 2000)));
}

WorkerChannel::Command WorkerChannel::next() {
  State& state = *state_;
  std::optional<Command> command;
  {
    std::unique_lock lock(state.mutex_);
    state.wait_until(lock, [&] { return !state.queue_.empty(); });
    command = std::move(state.queue_.front());
    state.queue_.pop_front();
    if (std::holds_alternative<Drop>(*command)) --state.drops_;
  }
  state.note_progress();
  if (const auto* page = std::get_if<CopyIn>(&*command))
    state.send(FrameType::kTaken, encode_taken(page->bytes.size()));
  return std::move(*command);
}

bool WorkerChannel::has_next() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->failed_ || !state_->queue_.empty();
}

bool WorkerChannel::drop_follows() const {
  const std::lock_guard lock(state_->mutex_);
  return state_->drops_ > 0;
}

void WorkerChannel::send_result(const ResultMessage& result) {
  {
    const std::lock_guard lock(state_->mutex_);
    state_->masks_.erase(state_->masks_.begin(), state_->masks_.upper_bound(result.number));
  }
  state_->send(FrameType::kResult, encode(result));
  state_->note_progress();
}

void WorkerChannel::acknowledge_drop() {
  state_->send(FrameType::kDropped, {});
  state_->note_progress();
}

void WorkerChannel::send_page(PageId page, std::span<const std::byte> bytes) {
  state_->send(FrameType::kPage, encode_page_id(page), bytes);
  state_->note_progress();
}

std::optional<std::string> WorkerChannel::failure() const { return state_->failure_.get(); }

void WorkerChannel::on_failure(std::function<void(const std::string&)> call) {
  state_->failure_.on_failure(std::move(call));
}

}  // namespace octavo
