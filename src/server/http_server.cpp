#include "server/http_server.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <new>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/service_notify.h"
#include "server/accept_failures.h"
#include "server/http/client_socket.h"
#include "server/http/connection.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    "Connection: close\r\nContent-Length: 118\r\n\r\n"
    R"({"error":{"message":"too many connections; try again later","type":"ServiceUnavailableError","param":null,"code":503}})";

// Every connection needs a descriptor; the usual soft limit of 1024 exists for select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

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

HttpServer::HttpServer(std::unique_ptr<Listener> listener, HttpContext& context, Router router)
    : listener_(std::move(listener)), context_(context), router_(std::move(router)) {
  raise_descriptor_limit();
  error_code error;
  listener_->acceptor().listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw SetupError(fmt::format("cannot listen on {}: {}; choose another address",
                                 listener_->url(), error.message()));
  }
  // Handle signals before the server is announced, so that an immediate SIGTERM drains it.
  signals_ = std::make_unique<asio::signal_set>(listener_->io(), SIGINT, SIGTERM);
  wait_for_signal();
}

HttpServer::~HttpServer() {
  // Open exchanges belong to the io_context and refer to context_, so the io_context goes first.
  signals_.reset();
  listener_.reset();
}

void HttpServer::run() {
  asio::co_spawn(listener_->io(), keep_accepting(), asio::detached);
  run_io();
  // From here on a signal ends the process.
  signals_.reset();
}

// An allocation that fails outside an exchange costs the connection it was for, not the server.
void HttpServer::run_io() {
  while (true) {
    try {
      listener_->io().run();
      return;
    } catch (const std::bad_alloc&) {
      spdlog::error("out of memory: a connection was closed");
    }
  }
}

void HttpServer::wait_for_signal() {
  signals_->async_wait([this](const error_code& error, int) {
    if (error) return;
    if (context_.draining) std::_Exit(1);
    // First: if memory runs out below, another signal can still end the server.
    wait_for_signal();
    spdlog::info("shutting down: open requests have {} s to finish; a second signal exits at once",
                 context_.options.drain_timeout.count() / 1000);
    drain();
  });
}

void HttpServer::drain() {
  asio::post(listener_->io(), [this] {
    if (std::exchange(context_.draining, true)) return;
    try {
      notify_service("STOPPING=1\nSTATUS=Draining");
      asio::co_spawn(listener_->io(), drain_and_stop(), asio::detached);
    } catch (const std::exception& error) {
      spdlog::error("shutting down at once: {}", error.what());
      listener_->io().stop();
    }
  });
}

Awaitable<void> HttpServer::wait_until_quiet(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  asio::steady_timer timer(listener_->io());
  while (context_.busy_exchanges > 0 && std::chrono::steady_clock::now() < deadline) {
    timer.expires_after(std::chrono::milliseconds(10));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

Awaitable<void> HttpServer::drain_and_stop() {
  try {
    co_await end_requests();
  } catch (const std::exception& error) {
    spdlog::error("shutting down at once: {}", error.what());
  }
  listener_->io().stop();
}

Awaitable<void> HttpServer::end_requests() {
  context_.drain_began();
  co_await wait_until_quiet(context_.options.drain_timeout);
  const size_t late = context_.cut_off_requests();
  if (late > 0) spdlog::warn("shutting down: {} requests did not finish in time", late);
  // Let them send a final error event.
  co_await wait_until_quiet(std::chrono::milliseconds(500));
  co_await context_.requests_ended();
}

// A connection for which there is no memory is dropped; the next one is accepted.
Awaitable<void> HttpServer::keep_accepting() {
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

Awaitable<void> HttpServer::accept_connections() {
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

Awaitable<void> HttpServer::refuse(Socket socket) {
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

Awaitable<void> HttpServer::serve(Socket socket) {
  const Counted counted(connections_);
  try {
    co_await serve_connection(std::move(socket), context_, router_);
  } catch (const std::exception& error) {
    spdlog::error("connection closed by an internal error: {}", error.what());
  }
}

}  // namespace octavo::server
