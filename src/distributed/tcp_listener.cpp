#include "distributed/tcp_listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "distributed/socket_address.h"

namespace octavo {
namespace {

constexpr int kBacklog = 64;

Descriptor listen_at(const SocketAddress& address) {
  Descriptor socket(::socket(address.family(), SOCK_STREAM, 0));
  if (!socket) return socket;
  ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) | O_NONBLOCK);
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (::bind(socket.get(), address.data(), address.length()) != 0 ||
      ::listen(socket.get(), kBacklog) != 0)
    return Descriptor();
  return socket;
}

}  // namespace

TcpListener::TcpListener(const std::string& host, uint16_t port, bool allow_public)
    : allow_public_(allow_public) {
  const SocketAddress address = SocketAddress::resolve(host, port, true).front();
  if (!allow_public && !address.is_private())
    throw SetupError(fmt::format(
        "{} is not a private address; the traffic between ranks is not encrypted, so they listen "
        "on loopback or private addresses only",
        host));
  socket_ = listen_at(address);
  if (!socket_)
    throw SetupError(fmt::format("cannot listen on {}: {}", join_address(host, port),
                                 std::generic_category().message(errno)));
  const SocketAddress local = SocketAddress::of_local(socket_.get());
  host_ = local.host();
  port_ = local.port();
}

std::string TcpListener::address() const { return join_address(host_, port_); }

std::optional<TcpConnection> TcpListener::accept(SocketClock::time_point deadline) {
  while (true) {
    Descriptor socket(::accept(socket_.get(), nullptr, nullptr));
    if (socket) {
      TcpConnection connection(std::move(socket));
      if (allow_public_ || connection.is_private()) return connection;
      continue;
    }
    // Without free descriptors, a connection waits but cannot be accepted.
    const bool nothing_waits = errno == EAGAIN || errno == EWOULDBLOCK;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SocketClock::now());
    if (left.count() <= 0) return std::nullopt;
    pollfd wait = {nothing_waits ? socket_.get() : -1, POLLIN, 0};
    ::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left.count(), nothing_waits ? 1000 : 50)));
  }
}

}  // namespace octavo
