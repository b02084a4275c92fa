#include "server/http/http_reader.h"

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "api/api_error.h"
#include "api/request_id.h"
#include "server/http/error_response.h"
#include "server/http_context.h"
#include "server/request_timeout.h"

namespace octavo::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

// Absolute form "http://host/path", which servers must accept, to "/path".
std::string_view without_authority(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() ||
        !equal_ignoring_case(target.substr(0, scheme.size()), scheme))
      continue;
    const size_t path = target.find_first_of("/?", scheme.size());
    return path == std::string_view::npos ? "/" : target.substr(path);
  }
  return target;
}

// Input that the parser accepts but that a proxy may interpret differently.
const char* fault_of(const http::request<http::string_body>& message) {
  const auto hosts = message.count(http::field::host);
  if (hosts > 1 || (hosts == 0 && message.version() >= 11)) return "one header Host is needed";
  // The parser takes "5" and "05", in two headers or in a list, for the same length.
  const auto lengths = message.count(http::field::content_length);
  const auto length = message[http::field::content_length];
  if (lengths > 1 || length.find(',') != length.npos) return "only one Content-Length is allowed";
  const auto encodings = message.count(http::field::transfer_encoding);
  if (encodings == 0) return nullptr;
  // Exactly this: the parser takes a list such as "chunked, chunked" for no body at all and would
  // read the body's bytes as the next request.
  const auto encoding = message[http::field::transfer_encoding];
  if (encodings > 1 || !equal_ignoring_case({encoding.data(), encoding.size()}, "chunked"))
    return "only chunked Transfer-Encoding is supported";
  if (message.version() < 11) return "Transfer-Encoding needs HTTP/1.1";
  return nullptr;
}

HttpRequest request_of(const http::request<http::string_body>& message) {
  HttpRequest request;
  request.method = std::string(message.method_string());
  const std::string_view target =
      without_authority({message.target().data(), message.target().size()});
  const size_t question = target.find('?');
  request.path = percent_decoded(target.substr(0, question));
  if (question != std::string_view::npos) request.query = std::string(target.substr(question + 1));
  for (const auto& field : message)
    request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  request.id = api::request_id_of(request.header("X-Request-Id"));
  return request;
}

}  // namespace

struct HttpReader::Parser {
  explicit Parser(size_t header_bytes) : buffer(2 * header_bytes) {}
  boost::beast::flat_buffer buffer;
  std::optional<http::request_parser<http::string_body>> message = {};  // a new one per request
};

HttpReader::HttpReader(std::shared_ptr<ClientSocket> socket, HttpContext& context)
    : socket_(std::move(socket)),
      context_(context),
      parser_(std::make_unique<Parser>(context.options.limits.header_bytes)) {}

HttpReader::~HttpReader() = default;

// The parser knows all headers Connection, the message only the first.
bool HttpReader::keep_alive() const { return parser_->message->keep_alive(); }
bool HttpReader::http_1_0() const { return parser_->message->get().version() < 11; }

void HttpReader::fail(int status, const char* message, Refusal refusal) {
  failure_ = {.response = error_response(status, message), .refusal = refusal};
}

Awaitable<bool> HttpReader::wait_for_first_byte() {
  if (parser_->buffer.size() > 0) co_return true;
  const ClientSocket::TimeLimit limit(*socket_, context_.options.limits.idle_timeout);
  error_code error;
  const auto room = parser_->buffer.prepare(4096);
  const size_t got = co_await socket_->socket().async_read_some(
      room, asio::redirect_error(asio::use_awaitable, error));
  parser_->buffer.commit(got);
  co_return !error;
}

Awaitable<std::optional<HttpRequest>> HttpReader::read_head() {
  const HttpLimits& limits = context_.options.limits;
  const bool began = co_await wait_for_first_byte();
  if (!began) co_return std::nullopt;
  parser_->message.emplace();
  parser_->message->header_limit(static_cast<uint32_t>(limits.header_bytes));
  parser_->message->body_limit(std::max(limits.body_bytes, context_.options.most_upload_bytes()));
  error_code error;
  {
    const ClientSocket::TimeLimit limit(*socket_, limits.header_timeout);
    co_await http::async_read_header(socket_->socket(), parser_->buffer, *parser_->message,
                                     asio::redirect_error(asio::use_awaitable, error));
  }
  if (!error) {
    const char* fault = fault_of(parser_->message->get());
    if (fault == nullptr) co_return with_deadline(request_of(parser_->message->get()));
    fail(400, fault, Refusal::kBadRequest);
    co_return std::nullopt;
  }
  if (socket_->timed_out()) {
    fail(408, "the request headers were not received in time", Refusal::kTimeout);
  } else if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    fail(431, "the headers are too large", Refusal::kBadRequest);
  } else if (error == http::error::body_limit) {
    // Detected at the end of the headers.
    fail(413, "the body is too large", Refusal::kBadRequest);
    failure_.path = request_of(parser_->message->get()).path;
  } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
             error != http::error::end_of_stream && error != http::error::partial_message) {
    fail(400, "not a valid HTTP/1.1 request", Refusal::kBadRequest);
  }
  co_return std::nullopt;
}

std::optional<HttpRequest> HttpReader::with_deadline(HttpRequest request) {
  try {
    request.deadline = deadline_of(request, std::chrono::steady_clock::now());
    return request;
  } catch (const RequestError& error) {
    failure_ = {.response = error_response(error),
                .refusal = Refusal::kBadRequest,
                .path = std::move(request.path)};
    return std::nullopt;
  }
}

Awaitable<bool> HttpReader::answer_expectation() {
  const auto& message = parser_->message->get();
  if (!equal_ignoring_case(std::string_view(message[http::field::expect].data(),
                                            message[http::field::expect].size()),
                           "100-continue"))
    co_return true;
  const std::string go_on = "HTTP/1.1 100 Continue\r\n\r\n";
  error_code error;
  const ClientSocket::TimeLimit limit(*socket_, context_.options.limits.write_timeout);
  co_await asio::async_write(socket_->socket(), asio::buffer(go_on),
                             asio::redirect_error(asio::use_awaitable, error));
  co_return !error;
}

bool HttpReader::limit_body(size_t bytes) {
  body_deadline_.reset();
  const auto length = parser_->message->content_length();
  if (length && *length > bytes) {
    fail(413, "the body is too large", Refusal::kBadRequest);
    return false;
  }
  if (!parser_->message->is_done()) parser_->message->body_limit(bytes);
  return true;
}

Awaitable<std::string> HttpReader::read_more() {
  const HttpLimits& limits = context_.options.limits;
  auto& message = *parser_->message;
  if (!body_deadline_) {
    body_deadline_ = std::chrono::steady_clock::now() + limits.body_total_timeout;
    const bool going_on = message.is_done() || co_await answer_expectation();
    if (!going_on) throw ClientGone();
  }
  std::string& part = message.get().body();
  error_code error;
  while (part.empty() && !message.is_done()) {
    {
      const ClientSocket::TimeLimit limit(*socket_, limits.body_timeout);
      co_await http::async_read_some(socket_->socket(), parser_->buffer, message,
                                     asio::redirect_error(asio::use_awaitable, error));
    }
    if (socket_->timed_out() || std::chrono::steady_clock::now() > *body_deadline_)
      throw RequestError(408, "", "the request body was not received in time");
    if (error == http::error::body_limit) throw RequestError(413, "", "the body is too large");
    if (error) throw ClientGone();
  }
  co_return std::exchange(part, {});
}

Awaitable<bool> HttpReader::read_body(HeldBody& body) {
  const HttpLimits& limits = context_.options.limits;
  auto& message = *parser_->message;
  if (!message.is_done()) {
    const bool going_on = co_await answer_expectation();
    if (!going_on) co_return false;
  }
  const auto deadline = std::chrono::steady_clock::now() + limits.body_total_timeout;
  error_code error;
  while (!message.is_done() && !error) {
    {
      const ClientSocket::TimeLimit limit(*socket_, limits.body_timeout);
      co_await http::async_read_some(socket_->socket(), parser_->buffer, message,
                                     asio::redirect_error(asio::use_awaitable, error));
    }
    if (!body.bytes.grow_to(static_cast<int64_t>(message.get().body().size()))) {
      fail(429, "open request bodies exceed the memory limit; try again later", Refusal::kBytes);
      co_return false;
    }
    if (socket_->timed_out() || std::chrono::steady_clock::now() > deadline) {
      fail(408, "the request body was not received in time", Refusal::kTimeout);
      co_return false;
    }
  }
  if (!error) {
    body.text = std::move(message.get().body());
    co_return true;
  }
  if (error == http::error::body_limit) {
    fail(413, "the body is too large", Refusal::kBadRequest);
  } else if (error.category() == http::make_error_code(http::error::bad_method).category() &&
             error != http::error::partial_message && error != http::error::end_of_stream) {
    fail(400, "the body's framing is not valid HTTP", Refusal::kBadRequest);
  }
  co_return false;
}

}  // namespace octavo::server
