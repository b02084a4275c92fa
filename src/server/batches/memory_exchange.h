// memory_exchange.h - an exchange without a socket: the server's own request. I/O thread only.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "server/http/exchange.h"

namespace octavo::server {

class MemoryExchange : public Exchange {
 public:
  MemoryExchange(HttpRequest request, HeldBody body)
      : request_(std::move(request)), body_(std::move(body)) {}

  const HttpRequest& request() const override { return request_; }
  HeldBody take_body() override { return std::move(body_); }
  Awaitable<void> send(HttpResponse response) override;
  Awaitable<void> start_stream(HttpResponse head) override;
  Awaitable<void> write(std::string_view bytes) override;
  bool started() const override { return response_.has_value(); }
  bool client_gone() const override { return left_; }
  void on_client_gone(std::function<void()> callback) override { on_leave_ = std::move(callback); }
  void note(std::string_view, std::string_view) override {}

  // The response is no longer wanted: the handler gets ClientGone.
  void leave();
  // Once it was sent. Errors have a body.
  const std::optional<HttpResponse>& response() const { return response_; }

 private:
  HttpRequest request_;
  HeldBody body_;
  std::optional<HttpResponse> response_ = {};
  bool left_ = false;
  std::function<void()> on_leave_ = nullptr;
};

}  // namespace octavo::server
