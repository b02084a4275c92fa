#include "server/http_server.h"

#include <sys/resource.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/service_notify.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Every connection needs a descriptor; the usual soft limit of 1024 exists for select().
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

void mask_hangups(int how) {
  sigset_t hangup;
  sigemptyset(&hangup);
  sigaddset(&hangup, SIGHUP);
  ::pthread_sigmask(how, &hangup, nullptr);
}

}  // namespace

void hold_hangups() { mask_hangups(SIG_BLOCK); }

HttpServer::HttpServer(std::unique_ptr<Listener> listener, HttpContext& context, Router router)
    : context_(context) {
  raise_descriptor_limit();
  acceptor_ = std::make_unique<ConnectionAcceptor>(std::move(listener), context, std::move(router));
  // Handle signals before the server is announced, so that an immediate SIGTERM drains it.
  signals_ = std::make_unique<asio::signal_set>(io(), SIGINT, SIGTERM);
  wait_for_signal();
  context_.http_metrics().set_key_names(context_.keys.names());
  if (context_.options.reload_api_keys) handle_hangups();
}

HttpServer::~HttpServer() {
  // Open exchanges belong to the io_context and refer to context_, so the io_context goes first.
  signals_.reset();
  hangups_.reset();
  acceptor_.reset();
}

void HttpServer::run() {
  acceptor_->start();
  run_io();
  // From here on a signal ends the process.
  signals_.reset();
}

// An allocation that fails outside an exchange costs the connection it was for, not the server.
void HttpServer::run_io() {
  while (true) {
    try {
      io().run();
      return;
    } catch (const std::bad_alloc&) {
      spdlog::error("out of memory: a connection was closed");
    }
  }
}

void HttpServer::wait_for_signal() {
  signals_->async_wait([this](const error_code& error, int) {
    if (error) return;
    if (stopping_) std::_Exit(1);
    // First: if memory runs out below, another signal can still end the server.
    wait_for_signal();
    if (context_.options.drain_delay.count() > 0)
      spdlog::info("shutting down: health checks fail now, requests are accepted for another {} s",
                   context_.options.drain_delay.count() / 1000.0);
    spdlog::info("shutting down: open requests have {} s to finish; a second signal exits at once",
                 context_.options.drain_timeout.count() / 1000);
    drain();
  });
}

void HttpServer::handle_hangups() {
  hangups_ = std::make_unique<asio::signal_set>(io(), SIGHUP);
  wait_for_hangup();
  mask_hangups(SIG_UNBLOCK);
}

void HttpServer::wait_for_hangup() {
  hangups_->async_wait([this](const error_code& error, int) {
    if (error) return;
    wait_for_hangup();
    context_.reload_keys();
  });
}

void HttpServer::drain() {
  asio::post(io(), [this] {
    if (std::exchange(stopping_, true)) return;
    (context_.options.drain_delay.count() > 0 ? context_.leaving : context_.draining) = true;
    try {
      notify_service("STOPPING=1\nSTATUS=Draining");
      asio::co_spawn(io(), drain_and_stop(), asio::detached);
    } catch (const std::exception& error) {
      spdlog::error("shutting down at once: {}", error.what());
      io().stop();
    }
  });
}

Awaitable<void> HttpServer::wait_until_quiet(std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  asio::steady_timer timer(io());
  while (context_.busy_exchanges > 0 && std::chrono::steady_clock::now() < deadline) {
    timer.expires_after(std::chrono::milliseconds(10));
    co_await timer.async_wait(asio::use_awaitable);
  }
}

// Health checks fail from now on; until routers have noticed, they send requests.
Awaitable<void> HttpServer::wait_for_routers() {
  asio::steady_timer timer(io(), context_.options.drain_delay);
  co_await timer.async_wait(asio::use_awaitable);
  context_.draining = true;
}

Awaitable<void> HttpServer::drain_and_stop() {
  try {
    if (context_.leaving) co_await wait_for_routers();
    co_await end_requests();
  } catch (const std::exception& error) {
    spdlog::error("shutting down at once: {}", error.what());
  }
  io().stop();
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

}  // namespace octavo::server
