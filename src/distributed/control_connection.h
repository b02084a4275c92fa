// control_connection.h - frames over one connection, after the handshake. Any thread sends; one
// thread, the reader, receives. No MLX.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "distributed/frame.h"
#include "distributed/tcp_connection.h"

namespace octavo {

class ControlConnection {
 public:
  // `patience`: how long a send waits for the peer to take any byte.
  ControlConnection(TcpConnection connection, std::chrono::milliseconds patience);

  // Throws ClusterError if the peer takes nothing for too long, or is gone. The payload is that of
  // both spans.
  void send(FrameType type, std::span<const std::byte> payload,
            std::span<const std::byte> more = {});
  // Never waits. False: not sent, because another thread is sending, or not all of it yet, because
  // the peer takes nothing. Throws ClusterError if it is gone.
  bool send_if_idle(FrameType type, std::span<const std::byte> payload);

  // Reads what has arrived and returns the frames that are complete. Throws ClusterError if the
  // peer is gone or sends something else, after all complete frames have been returned.
  std::vector<Frame> receive();
  // When the last byte was read.
  SocketClock::time_point heard() const { return heard_; }
  std::string host() const { return connection_.peer_host(); }

  int descriptor() const { return connection_.descriptor(); }
  void shut_down() { connection_.shut_down(); }
  void end_sending() { connection_.end_sending(); }

 private:
  void send_bytes(std::span<const std::byte> bytes);
  void finish_unsent();

  TcpConnection connection_;
  std::chrono::milliseconds patience_;
  std::mutex sending_;             // guards the next one and sending
  std::vector<std::byte> unsent_;  // the rest of a frame of send_if_idle()
  std::atomic<SocketClock::time_point> heard_;
  FrameReader reader_;
  std::vector<std::byte> buffer_;
  std::optional<ClusterError> broken_;  // found after frames that have been returned
};

}  // namespace octavo
