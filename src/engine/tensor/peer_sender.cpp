#include "engine/tensor/peer_sender.h"

#include <exception>

#include "base/thread_name.h"

namespace octavo {

PeerSender::PeerSender(TensorLinks& links, int peer)
    : links_(links), peer_(peer), thread_([this] { run(); }) {}

PeerSender::~PeerSender() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PeerSender::start(std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
  changed_.notify_all();
}

void PeerSender::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !bytes_.has_value(); });
  if (failure_) throw LinkError(*failure_);
}

void PeerSender::run() {
  name_this_thread("send-parts");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || bytes_.has_value(); });
    if (!bytes_) return;
    const std::span<const std::byte> bytes = *bytes_;
    lock.unlock();
    std::optional<std::string> error;
    try {
      links_.send(peer_, bytes);
    } catch (const std::exception& thrown) {
      error = thrown.what();
    }
    lock.lock();
    if (error) failure_ = error;
    bytes_.reset();
    changed_.notify_all();
  }
}

}  // namespace octavo
