// http_reader.h - reads requests from a socket, within limits. I/O thread only.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "server/http/client_socket.h"
#include "server/http/http.h"
#include "server/metrics/http_metrics.h"
#include "server/server_options.h"

namespace octavo::server {

class HttpContext;

// Why there is no request: the client left, or made the error in `response`.
struct ReadFailure {
  std::optional<HttpResponse> response = {};
  std::optional<Refusal> refusal = {};
  std::string path = {};  // the requested path, if it was read
};

class HttpReader {
 public:
  HttpReader(std::shared_ptr<ClientSocket> socket, HttpContext& context);
  ~HttpReader();

  // Reads the request line and headers. nullopt: see failure().
  Awaitable<std::optional<HttpRequest>> read_head();
  // Then, unless the body is known to be too large: see failure().
  bool limit_body(size_t bytes);
  // Then reads the body. False: see failure().
  Awaitable<bool> read_body(HeldBody& body);
  // Or reads the next part of the body; nothing at its end. Throws RequestError or ClientGone.
  Awaitable<std::string> read_more();

  const ReadFailure& failure() const { return failure_; }
  bool keep_alive() const;
  bool http_1_0() const;

 private:
  struct Parser;
  Awaitable<bool> wait_for_first_byte();
  Awaitable<bool> answer_expectation();
  std::optional<HttpRequest> with_deadline(HttpRequest request);
  void fail(int status, const char* message, Refusal refusal);

  std::shared_ptr<ClientSocket> socket_;
  HttpContext& context_;
  std::unique_ptr<Parser> parser_;
  ReadFailure failure_;
  std::optional<std::chrono::steady_clock::time_point> body_deadline_ = {};  // of read_more()
};

}  // namespace octavo::server
