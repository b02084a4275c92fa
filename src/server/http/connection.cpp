#include "server/http/connection.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "server/http/http_exchange.h"
#include "server/http/http_reader.h"
#include "server/http/router.h"
#include "server/http_context.h"
#include "server/metrics/access_log.h"

namespace octavo::server {
namespace {

// The CORS preflight response to OPTIONS.
HttpResponse preflight() {
  return {.status = 204,
          .content_type = "",
          .headers = {{"Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS"},
                      {"Access-Control-Allow-Headers",
                       "Authorization, Content-Type, x-api-key, X-Request-Id, x-request-timeout, "
                       "anthropic-version, anthropic-beta"},
                      {"Access-Control-Max-Age", "600"}}};
}

// Counts exchanges in progress, so that a drain can wait for them.
class Busy {
 public:
  explicit Busy(HttpContext& context) : context_(context) { ++context_.busy_exchanges; }
  ~Busy() { --context_.busy_exchanges; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  HttpContext& context_;
};

class Connection {
 public:
  Connection(std::shared_ptr<ClientSocket> socket, HttpContext& context, const Router& router)
      : socket_(std::move(socket)), context_(context), router_(router), reader_(socket_, context) {}

  // Returns whether the connection can be reused.
  Awaitable<bool> serve_one() {
    std::optional<HttpRequest> request = co_await reader_.read_head();
    if (!request) {
      co_await tell_failure();
      co_return false;
    }
    if (router_.needs_key()) request->key = context_.keys.find(*request);
    const std::shared_ptr<AcceptedKey> key = request->key;
    const HttpExchange::Options options{.keep_alive = reader_.keep_alive(),
                                        .http_1_0 = reader_.http_1_0()};
    HttpExchange exchange(socket_, context_, std::move(*request), options);
    if (key && !key->name.empty()) exchange.note("key", key->name);
    const auto began = std::chrono::steady_clock::now();
    bool left = false;
    try {
      co_await answer(exchange);
    } catch (const ClientGone&) {
      left = true;
    }
    socket_->stop_watching();
    const auto took = std::chrono::steady_clock::now() - began;
    const std::string_view route = router_.route_of(exchange.request());
    if (exchange.status() != 0)
      context_.http_metrics().http_requests(route, exchange.status()).Increment();
    if (key) context_.http_metrics().requests_by_key.add(key->name, 1);
    if (context_.options.access_log) log_access(exchange, took, left);
    co_return !left && exchange.status() != 0 && exchange.keeps_alive();
  }

 private:
  Awaitable<void> answer(HttpExchange& exchange) {
    std::optional<HttpResponse> refusal = early_answer(exchange.request());
    if (refusal) {
      // The body, if any, is not read.
      exchange.close_after();
      co_await exchange.send(std::move(*refusal));
      co_await socket_->linger();
      co_return;
    }
    if (router_.streams_body(exchange.request())) {
      co_await answer_streamed(exchange);
      co_return;
    }
    if (!reader_.limit_body(context_.options.limits.body_bytes)) {
      co_await tell_failure(&exchange);
      co_return;
    }
    exchange.body.bytes = *context_.bodies.try_lend(0);
    const bool whole = co_await reader_.read_body(exchange.body);
    if (!whole) {
      co_await tell_failure(&exchange);
      co_return;
    }
    const Busy busy(context_);
    socket_->watch();
    co_await router_.dispatch(context_, exchange);
    co_await exchange.finish();
  }

  // The handler reads the body, perhaps not to its end.
  Awaitable<void> answer_streamed(HttpExchange& exchange) {
    exchange.close_after();
    // Without a folder for uploads the handler refuses them.
    const ServerOptions& options = context_.options;
    if (!reader_.limit_body(std::max(options.limits.body_bytes, options.most_upload_bytes()))) {
      co_await tell_failure(&exchange);
      co_return;
    }
    const Busy busy(context_);
    exchange.body_source = [this] { return reader_.read_more(); };
    co_await router_.dispatch(context_, exchange);
    co_await exchange.finish();
    co_await socket_->linger();
  }

  std::optional<HttpResponse> early_answer(const HttpRequest& request) {
    if (auto refusal = router_.host_refusal(context_, request)) return refusal;
    if (request.method == "OPTIONS" && !context_.options.cors.allowed_origins.empty())
      return preflight();
    return router_.refusal(context_, request);
  }

  // Sends the error and discards the rest of the request.
  Awaitable<void> tell_failure(HttpExchange* exchange = nullptr) {
    const ReadFailure failure = reader_.failure();
    if (failure.refusal) context_.http_metrics().refusals(*failure.refusal).Increment();
    if (!failure.response) co_return;
    HttpExchange nameless(socket_, context_, {.path = failure.path, .id = "-"},
                          {.keep_alive = false});
    HttpExchange& out = exchange != nullptr ? *exchange : nameless;
    out.close_after();
    HttpResponse response = *failure.response;
    if (response.status == 429) response.headers.emplace_back("Retry-After", "1");
    try {
      co_await out.send(std::move(response));
    } catch (const ClientGone&) {
      co_return;
    }
    co_await socket_->linger();
  }

  std::shared_ptr<ClientSocket> socket_;
  HttpContext& context_;
  const Router& router_;
  HttpReader reader_;
};

}  // namespace

Awaitable<void> serve_connection(Socket socket, HttpContext& context, const Router& router) {
  const auto client = std::make_shared<ClientSocket>(std::move(socket));
  Connection connection(client, context, router);
  for (bool more = true; more;) more = co_await connection.serve_one();
  boost::system::error_code ignored;
  client->socket().shutdown(Socket::shutdown_both, ignored);
  client->socket().close(ignored);
}

}  // namespace octavo::server
