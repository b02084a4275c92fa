// http_reader.h - one request after the other off a socket, within the limits. I/O thread only.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/http/client_socket.h"
#include "server/http/http.h"
#include "server/metrics/metrics.h"
#include "server/server_options.h"

namespace octavo::server {

class ServerContext;

// Why there is no request: the client left, or it did what it is told in `response`.
struct ReadFailure {
  std::optional<HttpResponse> response = {};
  std::optional<Refusal> refusal = {};
  std::string path = {};  // that was asked for, if it was read
};

class HttpReader {
 public:
  HttpReader(std::shared_ptr<ClientSocket> socket, ServerContext& context);
  ~HttpReader();

  // The request's line and headers. Nothing: see failure().
  Awaitable<std::optional<HttpRequest>> read_head();
  // Then its body. False: see failure().
  Awaitable<bool> read_body(HeldBody& body);

  const ReadFailure& failure() const { return failure_; }
  bool keep_alive() const;
  bool http_1_0() const;

 private:
  struct Parser;
  Awaitable<bool> wait_for_first_byte();
  Awaitable<bool> answer_expectation();
  void fail(int status, const char* message, Refusal refusal);

  std::shared_ptr<ClientSocket> socket_;
  ServerContext& context_;
  std::unique_ptr<Parser> parser_;
  ReadFailure failure_;
};

}  // namespace octavo::server
