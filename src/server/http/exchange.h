// exchange.h - one request and the way back to its client. I/O thread only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <string_view>

#include "server/admission.h"
#include "server/http/http.h"

namespace octavo::server {

template <typename T>
using Awaitable = boost::asio::awaitable<T>;

// The client has left: whoever works for it stops. Thrown by the writers below.
struct ClientGone {};

// A request's body and its share of the memory that bodies may take.
struct HeldBody {
  std::string text = {};
  Allowance::Lease bytes = {};
};

class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const HttpRequest& request() const = 0;
  // Once.
  virtual HeldBody take_body() = 0;

  // Either send(), once, or start_stream() and any number of write()s. All throw ClientGone, a
  // write also when the client took nothing for too long.
  virtual Awaitable<void> send(HttpResponse response) = 0;
  virtual Awaitable<void> start_stream(HttpResponse head) = 0;
  virtual Awaitable<void> write(std::string_view bytes) = 0;
  virtual bool started() const = 0;  // the status is on its way

  virtual bool client_gone() const = 0;
  // Called, once, as soon as the client is seen to have left; nullptr takes it back.
  virtual void on_client_gone(std::function<void()> callback) = 0;

  // For the access log: "prompt_tokens=12 completion_tokens=3".
  virtual void note(std::string_view name, std::string_view value) = 0;
};

}  // namespace octavo::server
