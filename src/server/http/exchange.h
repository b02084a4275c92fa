// exchange.h - one request and its response. I/O thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "server/admission.h"
#include "server/http/http.h"

namespace octavo::server {

template <typename T>
using Awaitable = boost::asio::awaitable<T>;

// Thrown by the writers below when the client has left.
struct ClientGone {};

// A request's body and its share of max_open_bytes.
struct HeldBody {
  std::string text = {};
  Allowance::Lease bytes = {};
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  // Call once.
  virtual HeldBody take_body() = 0;
  // With Endpoint::streams_body, instead of take_body(): the next part of the body, or nothing at
  // its end. Throws RequestError or ClientGone.
  virtual Awaitable<std::string> read_more() { co_return std::string(); }

  // Either one send(), or start_stream() and any number of write()s. All throw ClientGone, also if
  // the client does not read for too long.
  virtual Awaitable<void> send(HttpResponse response) = 0;
  virtual Awaitable<void> start_stream(HttpResponse head) = 0;
  virtual Awaitable<void> write(std::string_view bytes) = 0;
  virtual bool started() const = 0;  // the status has been sent

  virtual bool client_gone() const = 0;
  // Called once when the client is found to have left; nullptr removes it.
  virtual void on_client_gone(std::function<void()> callback) = 0;

  // For the access log: "prompt_tokens=12 completion_tokens=3".
  virtual void note(std::string_view name, std::string_view value) = 0;

  // Keeps a share of max_open_bytes until the exchange ends.
  void hold(std::shared_ptr<Allowance::Lease> bytes) { held_ = std::move(bytes); }

 private:
  std::shared_ptr<Allowance::Lease> held_ = nullptr;
};

}  // namespace octavo::server
