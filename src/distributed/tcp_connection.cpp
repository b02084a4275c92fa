#include "distributed/tcp_connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "distributed/socket_address.h"

namespace octavo {
namespace {

#ifdef MSG_NOSIGNAL
constexpr int kNoSignal = MSG_NOSIGNAL;
#else
constexpr int kNoSignal = 0;  // SO_NOSIGPIPE is set
#endif
#ifdef MSG_MORE
constexpr int kMore = MSG_MORE;
#else
constexpr int kMore = 0;
#endif

std::string text_of_error(int error) { return std::generic_category().message(error); }

void set_socket_option(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof(value));
}

void configure_socket(int socket) {
  ::fcntl(socket, F_SETFD, FD_CLOEXEC);
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  set_socket_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_socket_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  constexpr int kIdleSeconds = 10;
#ifdef __APPLE__
  set_socket_option(socket, SOL_SOCKET, SO_NOSIGPIPE, 1);
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPALIVE, kIdleSeconds);
#else
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
#endif
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set_socket_option(socket, IPPROTO_TCP, TCP_KEEPCNT, 3);
}

int milliseconds_until(SocketClock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SocketClock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count(), 0, 1'000'000));
}

// Returns 0 or an error number.
int try_connect(const SocketAddress& address, SocketClock::time_point deadline,
                Descriptor& connected) {
  Descriptor socket(::socket(address.family(), SOCK_STREAM, 0));
  if (!socket) return errno;
  configure_socket(socket.get());
  if (::connect(socket.get(), address.data(), address.length()) != 0) {
    if (errno != EINPROGRESS) return errno;
    pollfd wait = {socket.get(), POLLOUT, 0};
    int ready = 0;
    do {
      ready = ::poll(&wait, 1, milliseconds_until(deadline));
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) return ETIMEDOUT;
    int error = 0;
    socklen_t length = sizeof(error);
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return error;
  }
  connected = std::move(socket);
  return 0;
}

}  // namespace

Descriptor::~Descriptor() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

TcpConnection::TcpConnection(Descriptor socket, std::shared_ptr<const StopSignal> stop)
    : socket_(std::move(socket)), stop_(std::move(stop)) {
  configure_socket(socket_.get());
}

TcpConnection TcpConnection::connect(const std::string& host, uint16_t port,
                                     SocketClock::time_point deadline, bool allow_public) {
  int error = 0;
  for (const SocketAddress& address : SocketAddress::resolve(host, port, false)) {
    if (!allow_public && !address.is_private())
      throw SetupError(fmt::format(
          "{} is the public address {}; ranks are connected through a private network, because "
          "their traffic is not encrypted",
          host, address.host()));
    Descriptor socket;
    error = try_connect(address, deadline, socket);
    if (error == 0) return TcpConnection(std::move(socket));
  }
  throw ClusterError(
      fmt::format("cannot connect to {}: {}", join_address(host, port), text_of_error(error)));
}

void TcpConnection::wait_for(short events, SocketClock::time_point deadline) const {
  std::array<pollfd, 2> waits = {pollfd{socket_.get(), events, 0},
                                 pollfd{stop_ ? stop_->descriptor() : -1, POLLIN, 0}};
  const int ready = ::poll(waits.data(), waits.size(), milliseconds_until(deadline));
  if (stop_ && stop_->stopped()) throw ClusterError("the connection was stopped");
  if (ready == 0 && SocketClock::now() >= deadline)
    throw ClusterError("the peer does not answer in time");
}

size_t TcpConnection::send_some(std::span<const std::byte> bytes, bool more) {
  const ssize_t sent =
      ::send(socket_.get(), bytes.data(), bytes.size(), kNoSignal | (more ? kMore : 0));
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw ClusterError(fmt::format("the connection is broken: {}", text_of_error(errno)));
}

size_t TcpConnection::receive_some(std::span<std::byte> bytes) {
  const ssize_t received = ::recv(socket_.get(), bytes.data(), bytes.size(), 0);
  if (received > 0) return static_cast<size_t>(received);
  if (received == 0) throw ClusterError("the peer closed the connection");
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  throw ClusterError(fmt::format("the connection is broken: {}", text_of_error(errno)));
}

void TcpConnection::send(std::span<const std::byte> bytes, SocketClock::time_point deadline,
                         bool more) {
  while (!bytes.empty()) {
    if (stop_ && stop_->stopped()) throw ClusterError("the connection was stopped");
    const size_t sent = send_some(bytes, more);
    bytes = bytes.subspan(sent);
    if (sent == 0) wait_for(POLLOUT, deadline);
  }
}

void TcpConnection::receive(std::span<std::byte> bytes, SocketClock::time_point deadline) {
  while (!bytes.empty()) {
    if (stop_ && stop_->stopped()) throw ClusterError("the connection was stopped");
    const size_t received = receive_some(bytes);
    bytes = bytes.subspan(received);
    if (received == 0) wait_for(POLLIN, deadline);
  }
}

void TcpConnection::shut_down() { ::shutdown(socket_.get(), SHUT_RDWR); }

void TcpConnection::end_sending() { ::shutdown(socket_.get(), SHUT_WR); }

std::string TcpConnection::peer_host() const {
  return SocketAddress::of_peer(socket_.get()).host();
}

std::string TcpConnection::local_host() const {
  return SocketAddress::of_local(socket_.get()).host();
}

bool TcpConnection::is_private() const {
  return SocketAddress::of_peer(socket_.get()).is_private() &&
         SocketAddress::of_local(socket_.get()).is_private();
}

}  // namespace octavo
