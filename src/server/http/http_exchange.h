// http_exchange.h - an exchange over a socket, in HTTP/1.1 or 1.0. I/O thread only.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "server/http/client_socket.h"
#include "server/http_context.h"

namespace octavo::server {

class HttpExchange : public Exchange {
 public:
  struct Options {
    bool keep_alive = true;
    bool http_1_0 = false;  // no chunked encoding: the connection ends the stream
  };

  HttpExchange(std::shared_ptr<ClientSocket> socket, HttpContext& context, HttpRequest request,
               Options options);
  ~HttpExchange() override;

  const HttpRequest& request() const override { return request_; }
  HeldBody take_body() override { return std::move(body); }
  Awaitable<std::string> read_more() override { return body_source(); }
  Awaitable<void> send(HttpResponse response) override;
  Awaitable<void> start_stream(HttpResponse head) override;
  Awaitable<void> write(std::string_view bytes) override;
  bool started() const override { return status_ != 0; }
  bool client_gone() const override { return socket_->client_gone(); }
  void on_client_gone(std::function<void()> callback) override {
    socket_->on_client_gone(std::move(callback));
  }
  void note(std::string_view name, std::string_view value) override;

  HeldBody body;                                                  // until take_body()
  std::function<Awaitable<std::string>()> body_source = nullptr;  // of read_more()

  // Ends the stream, if started.
  Awaitable<void> finish();
  // Whether the connection can be reused.
  bool keeps_alive() const { return options_.keep_alive; }
  void close_after() { options_.keep_alive = false; }

  int status() const { return status_; }  // 0: nothing sent yet
  const Headers& notes() const { return notes_; }

 private:
  void prepare_head(HttpResponse& response);
  Awaitable<void> write_all(std::string_view bytes);

  std::shared_ptr<ClientSocket> socket_;
  HttpContext& context_;
  HttpRequest request_;
  Options options_;
  int status_ = 0;
  bool streaming_ = false;
  Headers notes_;
};

}  // namespace octavo::server
