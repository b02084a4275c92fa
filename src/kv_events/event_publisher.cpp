#include "kv_events/event_publisher.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/thread_name.h"
#include "kv_events/split_changes.h"

namespace octavo::kv_events {
namespace {

constexpr size_t kReplayBytes = 64u << 20;
// Changes of one step come within this time and make one batch.
constexpr std::chrono::milliseconds kGather{1};
constexpr std::chrono::milliseconds kAfterError{100};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

EventPublisher::Signal::Signal() {
  if (::pipe(fds_) != 0)
    throw SetupError(std::string("--kv-events-config: cannot make a pipe: ") +
                     std::strerror(errno));
  for (int fd : fds_) {
    ::fcntl(fd, F_SETFL, O_NONBLOCK);
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
}

EventPublisher::Signal::~Signal() {
  for (int fd : fds_) ::close(fd);
}

void EventPublisher::Signal::raise() const {
  // If the pipe is full, the thread is being woken.
  [[maybe_unused]] const auto written = ::write(fds_[1], "", 1);
}

void EventPublisher::Signal::lower() const {
  char bytes[64];
  while (::read(fds_[0], bytes, sizeof(bytes)) > 0) {
  }
}

EventPublisher::EventPublisher(Config config)
    : config_(std::move(config)),
      sockets_(config_),
      queue_(static_cast<size_t>(config_.max_queue_size), [this] { signal_.raise(); }),
      replay_(static_cast<size_t>(config_.buffer_steps), kReplayBytes) {
  config_.endpoint = sockets_.endpoint();
  config_.replay_endpoint = sockets_.replay_endpoint();
  thread_ = std::thread([this] { run(); });
}

EventPublisher::~EventPublisher() {
  stopping_ = true;
  signal_.raise();
  thread_.join();
}

void EventPublisher::run() {
  name_this_thread("kv-events");
  while (true) {
    try {
      sockets_.serve(signal_.fd(), replay_);
      signal_.lower();
      std::this_thread::sleep_for(kGather);
      // Read first: what was added before it was set is still sent.
      const bool last = stopping_;
      if (const auto plan = queue_.take_plan()) groups_ = group_facts(*plan);
      send(queue_.take());
      if (last) return;
    } catch (const std::exception& error) {
      spdlog::error("KV events: {}", error.what());
      if (stopping_) return;
      std::this_thread::sleep_for(kAfterError);
    }
  }
}

void EventPublisher::send(ChangeQueue::Batch batch) {
  if (batch.dropped > 0) {
    ++next_;  // tells subscribers that some are missing
    spdlog::warn("KV events: {} changes were dropped, because more than max_queue_size = {} waited",
                 batch.dropped, config_.max_queue_size);
  }
  for (const auto& changes : split_changes(std::move(batch.changes))) {
    auto payload = std::make_shared<const std::vector<uint8_t>>(
        encode_batch(seconds_now(), changes, groups_, config_.event_form));
    const uint64_t sequence = next_++;
    sockets_.publish(sequence, payload);
    replay_.add(sequence, std::move(payload));
  }
}

}  // namespace octavo::kv_events
