// tcp_connection.h - a TCP connection whose calls have deadlines. One thread sends and one receives
// at a time; shut_down(): any thread. No MLX.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "distributed/cluster_error.h"
#include "distributed/stop_signal.h"

namespace octavo {

using SocketClock = std::chrono::steady_clock;

// A file descriptor, closed on destruction.
class Descriptor {
 public:
  explicit Descriptor(int descriptor = -1) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~Descriptor();

  int get() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

// Non-blocking, with TCP_NODELAY and keepalive.
class TcpConnection {
 public:
  // Takes over a connected socket. `stop`, if set, ends blocked and later calls.
  explicit TcpConnection(Descriptor socket, std::shared_ptr<const StopSignal> stop = nullptr);
  // Throws ClusterError if nothing accepts the connection until the deadline, and SetupError if the
  // address is unknown, or is neither private nor loopback without `allow_public`.
  static TcpConnection connect(const std::string& host, uint16_t port,
                               SocketClock::time_point deadline, bool allow_public = false);
  void set_stop(std::shared_ptr<const StopSignal> stop) { stop_ = std::move(stop); }

  // Send all bytes, or fill them, or throw ClusterError at the deadline, or when the connection is
  // broken. `more`: the next call follows at once, so small packets may be joined.
  void send(std::span<const std::byte> bytes, SocketClock::time_point deadline, bool more = false);
  void receive(std::span<std::byte> bytes, SocketClock::time_point deadline);
  // As many as possible without waiting. Throw ClusterError when the connection is broken or ended.
  size_t send_some(std::span<const std::byte> bytes, bool more = false);
  size_t receive_some(std::span<std::byte> bytes);

  // Ends both directions, or sending only: blocked calls throw.
  void shut_down();
  void end_sending();

  int descriptor() const { return socket_.get(); }
  // As numbers, without the port.
  std::string peer_host() const;
  std::string local_host() const;
  bool is_private() const;  // both ends are private or loopback

 private:
  void wait_for(short events, SocketClock::time_point deadline) const;

  Descriptor socket_;
  std::shared_ptr<const StopSignal> stop_;
};

}  // namespace octavo
