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

#include "bench/load/http_ask.h"
#include "bench/load/server_url.h"

namespace octavo::bench {

struct HttpOutcome {
  int status = 0;          // 0: no answer came
  std::string error = {};  // why the answer is not whole; empty: it is
};

class HttpClient {
 public:
  // Called with each piece of the body as soon as it is read.
  using OnBody = std::function<void(int status, std::string_view piece)>;

  // Throws SetupError when the host has no address.
  HttpClient(boost::asio::io_context& context, const ServerUrl& url);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Takes an idle connection or makes one. A kept-alive connection that the server has meanwhile
  // closed is replaced without a word, as long as nothing of the answer came.
  boost::asio::awaitable<HttpOutcome> ask(HttpAsk ask, OnBody on_body);

 private:
  class Connection;
  struct Addresses;

  boost::asio::io_context& context_;
  ServerUrl url_;
  std::unique_ptr<Addresses> addresses_;
  std::vector<std::unique_ptr<Connection>> idle_;
};

}  // namespace octavo::bench
