#include "server/server.h"

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
#include "server/endpoints/endpoints.h"
#include "server/http/client_socket.h"
#include "server/http/connection.h"
#include "server/output_stream.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
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

// For text workers, after a drain.
constexpr std::chrono::milliseconds kTimeToEnd{1000};

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

tcp::endpoint endpoint_of(asio::io_context& io, const std::string& host, uint16_t port) {
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, std::to_string(port), tcp::resolver::passive, error);
  if (error || found.empty()) throw SetupError(fmt::format("--host {}: {}", host, error.message()));
  return found.begin()->endpoint();
}

}  // namespace

bool is_loopback(const std::string& host) {
  if (host == "localhost") return true;
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  return !error && address.is_loopback();
}

Listener::Listener(const std::string& host, uint16_t port) {
  const tcp::endpoint endpoint = endpoint_of(io_, host, port);
  error_code error;
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (error) {
    throw SetupError(fmt::format("cannot listen on {} port {}: {}; choose another with --port",
                                 host, port, error.message()));
  }
  port_ = acceptor_.local_endpoint().port();
}

std::string Listener::url() const {
  const auto address = acceptor_.local_endpoint().address();
  const std::string host = address.is_unspecified() ? "localhost"
                           : address.is_v6()        ? "[" + address.to_string() + "]"
                                                    : address.to_string();
  return fmt::format("http://{}:{}", host, port_);
}

Server::Server(std::unique_ptr<Listener> listener, const api::ServedModel& model,
               ServerOptions options)
    : listener_(std::move(listener)),
      options_(std::move(options)),
      context_(std::make_unique<ServerContext>(listener_->io_, model, options_)),
      router_(all_endpoints(options_), options_) {
  raise_descriptor_limit();
  error_code error;
  listener_->acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    throw SetupError(fmt::format("cannot listen on port {}: {}; choose another with --port",
                                 listener_->port(), error.message()));
  }
  // Handle signals before the server is announced, so that an immediate SIGTERM drains it.
  signals_ = std::make_unique<asio::signal_set>(listener_->io_, SIGINT, SIGTERM);
  wait_for_signal();
}

Server::~Server() {
  // Text workers post to the io_context. Open exchanges belong to it and refer to context_, so the
  // io_context goes first.
  context_->text_workers.stop(std::chrono::hours(24 * 365));
  signals_.reset();
  listener_.reset();
}

bool Server::run() {
  asio::co_spawn(listener_->io_, keep_accepting(), asio::detached);
  run_io();
  // From here on a signal ends the process.
  signals_.reset();
  const bool ended = context_->text_workers.stop(kTimeToEnd);
  if (!ended) spdlog::warn("a text worker did not stop in time; exiting without it");
  return ended;
}

// An allocation that fails outside an exchange costs the connection it was for, not the server.
void Server::run_io() {
  while (true) {
    try {
      listener_->io_.run();
      return;
    } catch (const std::bad_alloc&) {
      spdlog::error("out of memory: a connection was closed");
    }
  }
}

void Server::wait_for_signal() {
  signals_->async_wait([this](const error_code& error, int) {
    if (error) return;
    if (context_->draining) std::_Exit(1);
    // First: if memory runs out below, another signal can still end the server.
    wait_for_signal();
    spdlog::info("shutting down: open requests have {} s to finish; a second signal exits at once",
                 options_.drain_timeout.count() / 1000);
    drain();
  });
}

void Server::drain() {
  asio::post(listener_->io_, [this] {
    if (std::exchange(context_->draining, true)) return;
    try {
      notify_service("STOPPING=1\nSTATUS=Draining");
      asio::co_spawn(listener_->io_, drain_and_stop(), asio::detached);
    } catch (const std::exception& error) {
      spdlog::error("shutting down at once: {}", error.what());
      listener_->io_.stop();
    }
  });
}

Awaitable<void> Server::wait_until_quiet(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  asio::steady_timer timer(listener_->io_);
  while (context_->busy_exchanges > 0 && std::chrono::steady_clock::now() < deadline) {
    timer.expires_after(std::chrono::milliseconds(10));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

Awaitable<void> Server::drain_and_stop() {
  try {
    co_await end_requests();
  } catch (const std::exception& error) {
    spdlog::error("shutting down at once: {}", error.what());
  }
  listener_->io_.stop();
}

Awaitable<void> Server::end_requests() {
  co_await wait_until_quiet(options_.drain_timeout);
  const std::set<OutputStream*> late = context_->answering;
  if (!late.empty()) spdlog::warn("shutting down: {} requests did not finish in time", late.size());
  for (OutputStream* answers : late) answers->cut_off();
  context_->text_workers.stop_jobs("the server is shutting down");
  // Let them send a final error event.
  co_await wait_until_quiet(std::chrono::milliseconds(500));
}

// A connection for which there is no memory is dropped; the next one is accepted.
Awaitable<void> Server::keep_accepting() {
  asio::steady_timer pause(listener_->io_);
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

Awaitable<void> Server::accept_connections() {
  asio::steady_timer pause(listener_->io_);
  AcceptFailures failures;
  while (true) {
    error_code error;
    tcp::socket socket = co_await listener_->acceptor_.async_accept(
        asio::redirect_error(asio::use_awaitable, error));
    if (error) {
      const auto advice = failures.failed(error.message(), std::chrono::steady_clock::now());
      if (!advice.line.empty()) spdlog::warn("{}", advice.line);
      pause.expires_after(advice.wait);
      co_await pause.async_wait(asio::use_awaitable);
      continue;
    }
    failures.succeeded();
    if (connections_ >= options_.max_connections) {
      asio::co_spawn(listener_->io_, refuse(std::move(socket)), asio::detached);
    } else {
      asio::co_spawn(listener_->io_, serve(std::move(socket)), asio::detached);
    }
  }
}

Awaitable<void> Server::refuse(tcp::socket socket) {
  // Beyond this many refusals at once, close without a response.
  constexpr int kMostAtOnce = 256;
  context_->metrics.refusals(Refusal::kConnections).Increment();
  if (refusing_ >= kMostAtOnce) co_return;
  const Counted counted(refusing_);
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.write_some(asio::buffer(kFull), ignored);
  const auto client = std::make_shared<ClientSocket>(std::move(socket));
  co_await client->linger();
}

Awaitable<void> Server::serve(tcp::socket socket) {
  const Counted counted(connections_);
  try {
    co_await serve_connection(std::move(socket), *context_, router_);
  } catch (const std::exception& error) {
    spdlog::error("connection closed by an internal error: {}", error.what());
  }
}

}  // namespace octavo::server
