#include "server/client_socket.h"

#include <sys/socket.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

namespace octavo::server {

namespace asio = boost::asio;

ClientSocket::ClientSocket(asio::ip::tcp::socket socket)
    : socket_(std::move(socket)), timer_(socket_.get_executor()) {
  boost::system::error_code ignored;
  // Tokens go out as they come.
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

void ClientSocket::arm(std::chrono::milliseconds limit) {
  timer_.expires_after(limit);
  timer_.async_wait([self = shared_from_this()](const boost::system::error_code& cancelled) {
    // A timer that ran out just before it was moved on says nothing of the new limit.
    if (cancelled || self->timer_.expiry() > std::chrono::steady_clock::now()) return;
    self->timed_out_ = true;
    boost::system::error_code ignored;
    self->socket_.cancel(ignored);
  });
}

void ClientSocket::watch() {
  asio::co_spawn(socket_.get_executor(), watch_for_end(shared_from_this()),
                 asio::bind_cancellation_slot(stop_watch_.slot(), asio::detached));
}

void ClientSocket::stop_watching() { stop_watch_.emit(asio::cancellation_type::terminal); }

Awaitable<void> ClientSocket::watch_for_end(std::shared_ptr<ClientSocket> self) {
  boost::system::error_code error;
  co_await self->socket_.async_wait(asio::ip::tcp::socket::wait_read,
                                    asio::redirect_error(asio::use_awaitable, error));
  if (!error && self->at_end()) self->set_client_gone();
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

}  // namespace octavo::server
