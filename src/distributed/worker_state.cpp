#include "distributed/worker_state.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/thread_name.h"

namespace octavo {

WorkerChannel::State::State(TcpConnection connection, TcpListener links,
                            WorkerChannelOptions options, Welcome welcome)
    : options_(std::move(options)),
      welcome_(std::move(welcome)),
      name_(fmt::format("rank 0 ({})", connection.peer_host())),
      links_(std::move(links)),
      connection_(std::move(connection), options_.silence),
      progress_(SocketClock::now()) {
  failure_.on_failure([this](const std::string& why) { on_failed(why); });
  reader_ = std::thread([this] { read_all(); });
  heartbeat_ = std::make_unique<Ticker>("worker-beat", options_.heartbeat, [this] { beat(); });
}

WorkerChannel::State::~State() {
  stopping_ = true;
  wake_.stop();
  links_stop_->stop();
  heartbeat_.reset();
  reader_.join();
  release_masks();
}

void WorkerChannel::State::send(FrameType type, std::span<const std::byte> payload,
                                std::span<const std::byte> more) {
  failure_.throw_if_failed();
  try {
    connection_.send(type, payload, more);
  } catch (const ClusterError& error) {
    failure_.fail(fmt::format("{}: {}", name_, error.what()));
    failure_.throw_if_failed();
  }
}

// The first callback of a failure: wakes all threads.
void WorkerChannel::State::on_failed(const std::string& why) {
  failed_ = true;
  links_stop_->stop();
  release_masks();
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  try {
    connection_.send_if_idle(FrameType::kError, encode_text(std::string_view(why).substr(0, 2000)));
  } catch (const ClusterError&) {
    // Rank 0 is gone.
  }
  connection_.end_sending();  // ends blocked sends too
}

// Ends draws that wait for a mask; their tokens are not used.
void WorkerChannel::State::release_masks() {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, masks] : masks_)
    for (const auto& mask : masks)
      if (mask != nullptr) mask->set({});
  masks_.clear();
}

std::chrono::milliseconds WorkerChannel::State::progress_age() const {
  if (options_.progress_age) return options_.progress_age();
  return std::chrono::duration_cast<std::chrono::milliseconds>(SocketClock::now() -
                                                               progress_.load());
}

void WorkerChannel::State::beat() {
  if (failed_ || stopping_) return;
  try {
    connection_.send_if_idle(FrameType::kHeartbeat, encode_heartbeat(progress_age()));
  } catch (const ClusterError&) {
    // The reader finds out why.
  }
}

void WorkerChannel::State::read_all() {
  name_this_thread("worker-reader");
  const auto tick = std::clamp<int64_t>(options_.silence.count() / 10, 10, 500);
  while (!stopping_ && !failed_ && !finished_) {
    std::array<pollfd, 2> waits = {pollfd{connection_.descriptor(), POLLIN, 0},
                                   pollfd{wake_.descriptor(), POLLIN, 0}};
    ::poll(waits.data(), waits.size(), static_cast<int>(tick));
    if (waits[0].revents != 0) read_some();
    const auto silent = SocketClock::now() - connection_.heard();
    if (silent > options_.silence && !finished_)
      failure_.fail(fmt::format("{} does not answer: nothing was received from it for {:.1f} s",
                                name_, std::chrono::duration<double>(silent).count()));
  }
}

void WorkerChannel::State::read_some() {
  try {
    for (Frame& frame : connection_.receive()) handle(std::move(frame));
  } catch (const std::exception& error) {
    if (!finished_) failure_.fail(fmt::format("{}: {}", name_, error.what()));
  }
}

void WorkerChannel::State::enqueue(Command command) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(command));
  changed_.notify_all();
}

void WorkerChannel::State::handle(Frame frame) {
  switch (frame.type) {
    case FrameType::kHeartbeat:
      decode_heartbeat(frame.payload);
      return;
    case FrameType::kSetup: {
      const std::lock_guard lock(mutex_);
      if (setup_) throw WireError("a second setup");
      setup_ = decode_text(frame.payload);
      changed_.notify_all();
      return;
    }
    case FrameType::kError:
      throw ClusterError(fmt::format("it ended the cluster: {}", decode_text(frame.payload)));
    case FrameType::kStep:
      return handle_step(frame);
    case FrameType::kMask:
      return set_mask(decode_mask(frame.payload));
    case FrameType::kDrop: {
      release_masks();
      next_step_ = 0;
      const std::lock_guard lock(mutex_);
      ++drops_;
      queue_.emplace_back(Drop{});
      changed_.notify_all();
      return;
    }
    case FrameType::kCopyOut: {
      const PageRequest request = decode_page_request(frame.payload);
      return enqueue(CopyOut{.page = request.page, .bytes = static_cast<size_t>(request.bytes)});
    }
    case FrameType::kCopyIn: {
      const PageBytes page = decode_page(frame.payload);
      return enqueue(CopyIn{.page = page.page, .bytes = {page.bytes.begin(), page.bytes.end()}});
    }
    case FrameType::kShutdown:
      // Until then it waits for other things than commands.
      if (!ready_) throw ClusterError("it ended the cluster before this rank was ready");
      finished_ = true;
      return enqueue(Shutdown{});
    default:
      throw WireError(
          fmt::format("a message of type {} is not for a worker", static_cast<int>(frame.type)));
  }
}

void WorkerChannel::State::handle_step(const Frame& frame) {
  StepLimits limits;
  {
    const std::lock_guard lock(mutex_);
    limits = limits_;
  }
  StepMasks masks;
  StepMessage step = decode_step(frame.payload, limits, &masks);
  if (step.number != next_step_)
    throw WireError(fmt::format("step {} follows step {}", step.number, next_step_ - 1));
  for (const int32_t source : step.batch.token_sources)
    if (source >= drawn_)
      throw WireError(fmt::format("step {} takes token {} of a step that draws {}", step.number,
                                  source, drawn_));
  ++next_step_;
  drawn_ = static_cast<int>(step.batch.sampling.size());
  const std::lock_guard lock(mutex_);
  if (std::ranges::any_of(masks, [](const auto& mask) { return mask != nullptr; }))
    masks_.emplace(step.number, std::move(masks));
  queue_.emplace_back(std::move(step));
  changed_.notify_all();
}

void WorkerChannel::State::set_mask(MaskMessage message) {
  const std::lock_guard lock(mutex_);
  const auto found = masks_.find(message.number);
  if (found == masks_.end()) return;  // the step failed before it was drawn
  if (message.index >= found->second.size() || found->second[message.index] == nullptr)
    throw WireError("a mask for a row that has none");
  TokenMask& mask = *found->second[message.index];
  if (message.failure) {
    mask.fail(*message.failure);
  } else {
    mask.set(std::move(message.words));
  }
}

}  // namespace octavo
