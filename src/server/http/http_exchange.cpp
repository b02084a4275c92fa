#include "server/http/http_exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <utility>

#include "api/api_error.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;

// Prevents header injection.
std::string on_one_line(std::string value) {
  std::ranges::replace_if(value, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  return value;
}

// "HTTP/1.1 200 OK" and the headers, up to and including the empty line.
std::string head_text(const HttpResponse& response) {
  const auto reason =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(response.status));
  std::string text = fmt::format("HTTP/1.1 {} {}\r\n", response.status,
                                 std::string_view(reason.data(), reason.size()));
  if (!response.content_type.empty())
    text += fmt::format("Content-Type: {}\r\n", response.content_type);
  for (const auto& [name, value] : response.headers)
    text += fmt::format("{}: {}\r\n", name, on_one_line(value));
  return text + "\r\n";
}

// The value of Access-Control-Allow-Origin, or empty.
std::string allowed_origin(const CorsOptions& cors, std::string_view origin) {
  for (const std::string& allowed : cors.allowed_origins) {
    if (allowed == "*") return "*";
    if (!origin.empty() && allowed == origin) return allowed;
  }
  return {};
}

}  // namespace

HttpExchange::HttpExchange(std::shared_ptr<ClientSocket> socket, HttpContext& context,
                           HttpRequest request, Options options)
    : socket_(std::move(socket)),
      context_(context),
      request_(std::move(request)),
      options_(options) {}

HttpExchange::~HttpExchange() { socket_->on_client_gone(nullptr); }

void HttpExchange::note(std::string_view name, std::string_view value) {
  notes_.emplace_back(name, value);
}

void HttpExchange::prepare_head(HttpResponse& response) {
  status_ = response.status;
  // Clients use another server for their next request.
  options_.keep_alive = options_.keep_alive && !context_.leaving && !context_.draining;
  response.headers.emplace_back("X-Request-Id", request_.id);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Connection", options_.keep_alive ? "keep-alive" : "close");
  const std::string origin = allowed_origin(context_.options.cors, request_.header("Origin"));
  if (origin.empty()) return;
  response.headers.emplace_back("Access-Control-Allow-Origin", origin);
  response.headers.emplace_back("Access-Control-Expose-Headers",
                                "X-Request-Id, x-octavo-ignored, x-octavo-cache");
  if (origin != "*") response.headers.emplace_back("Vary", "Origin");
}

Awaitable<void> HttpExchange::write_all(std::string_view bytes) {
  boost::system::error_code error;
  {
    const ClientSocket::TimeLimit limit(*socket_, context_.options.limits.write_timeout);
    co_await asio::async_write(socket_->socket(), asio::buffer(bytes.data(), bytes.size()),
                               asio::redirect_error(asio::use_awaitable, error));
  }
  if (!error) co_return;
  if (socket_->timed_out()) context_.http_metrics().slow_readers.Increment();
  options_.keep_alive = false;
  throw ClientGone();
}

Awaitable<void> HttpExchange::send(HttpResponse response) {
  prepare_head(response);
  if (response.error)
    response.body =
        api::error_body(api::error_style_of(request_.path), response.status, *response.error);
  // 204 must not have a Content-Length.
  if (response.status != 204)
    response.headers.emplace_back("Content-Length", std::to_string(response.body.size()));
  std::string text = head_text(response);
  if (request_.method != "HEAD") text += response.body;
  co_await write_all(text);
}

Awaitable<void> HttpExchange::start_stream(HttpResponse head) {
  if (options_.http_1_0) options_.keep_alive = false;
  prepare_head(head);
  if (!options_.http_1_0) head.headers.emplace_back("Transfer-Encoding", "chunked");
  streaming_ = true;
  const std::string text = head_text(head);
  co_await write_all(text);
}

Awaitable<void> HttpExchange::write(std::string_view bytes) {
  if (options_.http_1_0) {
    co_await write_all(bytes);
    co_return;
  }
  const std::string chunk = fmt::format("{:x}\r\n{}\r\n", bytes.size(), bytes);
  co_await write_all(chunk);
}

Awaitable<void> HttpExchange::finish() {
  if (!streaming_ || options_.http_1_0) co_return;
  const std::string_view last = "0\r\n\r\n";
  co_await write_all(last);
}

}  // namespace octavo::server
