#include "server/http/client_socket.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

namespace octavo::server {

namespace asio = boost::asio;

ClientSocket::ClientSocket(Socket socket)
    : socket_(std::move(socket)),
      timer_(socket_.get_executor()),
      next_look_(socket_.get_executor()) {
  boost::system::error_code ignored;
  // Send tokens without delay. Unix sockets have no such option.
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

void ClientSocket::arm(std::chrono::milliseconds limit) {
  timed_out_ = false;
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    // The timer may have been re-armed just after it expired.
    if (cancelled || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
    self->timed_out_ = true;
    boost::system::error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void ClientSocket::disarm() { timer_.expires_at(std::chrono::steady_clock::time_point::max()); }

void ClientSocket::watch() {
  auto on_readable = [self = shared_from_this()](const boost::system::error_code& error) {
    if (error) return;
    if (self->at_end()) {
      self->set_client_gone();
    } else {
      self->look_again();
    }
  };
  socket_.async_wait(Socket::wait_read,
                     asio::bind_cancellation_slot(stop_watch_.slot(), std::move(on_readable)));
}

void ClientSocket::stop_watching() {
  stop_watch_.emit(asio::cancellation_type::terminal);
  next_look_.cancel();
}

// The client has already sent its next request, so the socket stays readable: poll for a hang-up.
void ClientSocket::look_again() {
  next_look_.expires_after(std::chrono::milliseconds(20));
  next_look_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    if (cancelled) return;
    if (self->has_hung_up()) {
      self->set_client_gone();
    } else {
      self->look_again();
    }
  });
}

bool ClientSocket::has_hung_up() {
#ifdef POLLRDHUP
  constexpr short kHalfClosed = POLLRDHUP;
#else
  constexpr short kHalfClosed = 0;
#endif
  pollfd state{.fd = socket_.native_handle(), .events = kHalfClosed, .revents = 0};
  return ::poll(&state, 1, 0) > 0 && (state.revents & (kHalfClosed | POLLHUP | POLLERR)) != 0;
}

bool ClientSocket::at_end() {
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void ClientSocket::set_client_gone() {
  client_gone_ = true;
  if (on_client_gone_) std::exchange(on_client_gone_, nullptr)();
}

Awaitable<void> ClientSocket::linger() {
  constexpr size_t kMostBytes = 16u << 20;
  boost::system::error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  const TimeLimit limit(*this, std::chrono::milliseconds(1000));
  std::array<char, 8192> waste;
  for (size_t read = 0; !error && read < kMostBytes;) {
    read += co_await socket_.async_read_some(asio::buffer(waste),
                                             asio::redirect_error(asio::use_awaitable, error));
  }
}

}  // namespace octavo::server
