#include "distributed/control_connection.h"

#include <algorithm>
#include <utility>

namespace octavo {
namespace {

constexpr size_t kReceiveBytes = 256u << 10;
constexpr size_t kPieceBytes = 256u << 10;  // that the peer must take within the patience
constexpr int kReadsAtOnce = 16;            // so that other connections are served too

}  // namespace

ControlConnection::ControlConnection(TcpConnection connection, std::chrono::milliseconds patience)
    : connection_(std::move(connection)),
      patience_(patience),
      heard_(SocketClock::now()),
      buffer_(kReceiveBytes) {}

void ControlConnection::send_bytes(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const size_t count = std::min(bytes.size(), kPieceBytes);
    connection_.send(bytes.first(count), SocketClock::now() + patience_);
    bytes = bytes.subspan(count);
  }
}

void ControlConnection::finish_unsent() {
  send_bytes(unsent_);
  unsent_.clear();
}

void ControlConnection::send(FrameType type, std::span<const std::byte> payload,
                             std::span<const std::byte> more) {
  const std::lock_guard lock(sending_);
  finish_unsent();
  if (payload.size() + more.size() <= kPieceBytes) {
    send_bytes(frame_bytes(type, payload, more));
    return;
  }
  const FrameHeader header = frame_header(type, payload.size() + more.size());
  send_bytes(header);
  send_bytes(payload);
  send_bytes(more);
}

bool ControlConnection::send_if_idle(FrameType type, std::span<const std::byte> payload) {
  const std::unique_lock lock(sending_, std::try_to_lock);
  if (!lock) return false;
  const bool is_next = unsent_.empty();
  if (is_next) unsent_ = frame_bytes(type, payload);
  const size_t sent = connection_.send_some(unsent_);
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<ptrdiff_t>(sent));
  return is_next && unsent_.empty();
}

std::vector<Frame> ControlConnection::receive() {
  if (broken_) throw ClusterError(*broken_);
  std::vector<Frame> frames;
  try {
    for (int reads = 0; reads < kReadsAtOnce; ++reads) {
      const size_t count = connection_.receive_some(buffer_);
      if (count == 0) break;
      heard_ = SocketClock::now();
      std::span<const std::byte> left(buffer_.data(), count);
      while (!left.empty())
        if (auto frame = reader_.take(left)) frames.push_back(std::move(*frame));
    }
  } catch (const ClusterError& error) {
    if (frames.empty()) throw;
    broken_ = error;
  }
  return frames;
}

}  // namespace octavo
