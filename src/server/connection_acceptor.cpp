#include "server/connection_acceptor.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <new>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "server/accept_failures.h"
#include "server/http/connection.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    "Connection: close\r\nContent-Length: 118\r\n\r\n"
    R"({"error":{"message":"too many connections; try again later","type":"ServiceUnavailableError","param":null,"code":503}})";

// One more for its lifetime.
class Counted {
 public:
  explicit Counted(int& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& count_;
};

}  // namespace

ConnectionAcceptor::ConnectionAcceptor(std::unique_ptr<Listener> listener, HttpContext& context,
                                       Router router)
    : listener_(std::move(listener)), context_(context), router_(std::move(router)) {
  error_code error;
  listener_->acceptor().listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw SetupError(fmt::format("cannot listen on {}: {}; choose another address",
                                 listener_->url(), error.message()));
  }
}

void ConnectionAcceptor::start() {
  asio::co_spawn(listener_->io(), keep_accepting(), asio::detached);
}

// A connection for which there is no memory is dropped; the next one is accepted.
Awaitable<void> ConnectionAcceptor::keep_accepting() {
  asio::steady_timer pause(listener_->io());
  while (true) {
    try {
      co_await accept_connections();
    } catch (const std::bad_alloc&) {
      spdlog::error("out of memory: a connection was closed");
    }
    for (bool paused = false; !paused;) {
      try {
        pause.expires_after(std::chrono::milliseconds(50));
        co_await pause.async_wait(asio::use_awaitable);
        paused = true;
      } catch (const std::bad_alloc&) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));  // other threads free memory
      }
    }
  }
}

Awaitable<void> ConnectionAcceptor::accept_connections() {
  asio::steady_timer pause(listener_->io());
  AcceptFailures failures;
  while (true) {
    error_code error;
    Socket socket = co_await listener_->acceptor().async_accept(
        asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      const auto advice = failures.failed(error.message(), std::chrono::steady_clock::now());
      if (!advice.line.empty()) spdlog::warn("{}", advice.line);
      pause.expires_after(advice.wait);
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    failures.succeeded();
    if (connections_ >= context_.options.max_connections) {
      asio::co_spawn(listener_->io(), refuse(std::move(socket)), asio::detached);
    } else {
      asio::co_spawn(listener_->io(), serve(std::move(socket)), asio::detached);
    }
  }
}

Awaitable<void> ConnectionAcceptor::refuse(Socket socket) {
  // Beyond this many refusals at once, close without a response.
  constexpr int kMostAtOnce = 256;
  context_.http_metrics().refusals(Refusal::kConnections).Increment();
  if (refusing_ >= kMostAtOnce) co_return;
  const Counted counted(refusing_);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kFull), ignored);
  const auto client = std::make_shared<ClientSocket>(std::move(socket));
  co_await client->linger();
}

Awaitable<void> ConnectionAcceptor::serve(Socket socket) {
  const Counted counted(connections_);
  try {
    co_await serve_connection(std::move(socket), context_, router_);
  } catch (const std::exception& error) {
    spdlog::error("connection closed by an internal error: {}", error.what());
  }
}

}  // namespace octavo::server
