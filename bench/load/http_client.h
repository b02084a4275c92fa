// http_client.h - HTTP/1.1 requests over kept-alive connections, as coroutines. One thread: the one
// that runs the io_context. No MLX.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bench/load/http_request.h"
#include "bench/load/server_url.h"

namespace octavo::bench {

struct HttpOutcome {
  int status = 0;          // 0: no reply
  std::string error = {};  // why the reply is incomplete; empty: it is complete
};

class HttpClient {
 public:
  // Called with each piece of the body as soon as it is read.
  using OnBody = std::function<void(int status, std::string_view piece)>;

  // Throws SetupError if the host name cannot be resolved.
  HttpClient(boost::asio::io_context& context, const ServerUrl& url);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Uses an idle connection or opens one. If the server has closed a kept-alive connection in the
  // meantime, retries with another, unless part of the reply has arrived.
  boost::asio::awaitable<HttpOutcome> send(HttpRequest request, OnBody on_body);

 private:
  class Connection;
  struct Addresses;

  boost::asio::io_context& context_;
  ServerUrl url_;
  std::unique_ptr<Addresses> addresses_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace octavo::bench
