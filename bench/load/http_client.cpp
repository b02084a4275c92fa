#include "bench/load/http_client.h"

#include <fmt/format.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <utility>

#include "base/error.h"

namespace octavo::bench {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using Message = http::request<http::string_body>;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

Message message_of(const HttpRequest& request, const ServerUrl& url) {
  Message message{request.json.empty() ? http::verb::get : http::verb::post,
                  url.prefix + request.path, 11};
  message.set(http::field::host, host_header(url));
  message.set(http::field::user_agent, "octavo-bench");
  message.set(http::field::accept, "*/*");
  if (!request.api_key.empty())
    message.set(http::field::authorization, "Bearer " + request.api_key);
  if (!request.json.empty()) {
    message.set(http::field::content_type, "application/json");
    message.body() = request.json;
  }
  message.prepare_payload();
  return message;
}

std::string words_for(const error_code& error, const HttpRequest& request) {
  if (error == beast::error::timeout)
    return fmt::format("timed out after {} s", request.timeout_seconds);
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error == asio::error::eof || error == asio::error::connection_reset ||
      error == asio::error::broken_pipe)
    return "connection closed early";
  std::string words = error.message();
  if (error == asio::error::connection_refused) words = "connection refused";
  return words;
}

}  // namespace

struct HttpClient::Addresses {
  tcp::resolver::results_type list;
};

class HttpClient::Connection {
 public:
  explicit Connection(asio::io_context& context) : stream_(context) {}

  // The result of one exchange over this connection.
  struct Exchange {
    int status = 0;
    error_code error = {};
    bool keep_alive = false;
  };

  void expire_at(std::chrono::steady_clock::time_point deadline) { stream_.expires_at(deadline); }
  void clear_deadline() { stream_.expires_never(); }

  asio::awaitable<error_code> connect(const tcp::resolver::results_type& addresses) {
    const auto [error, endpoint] = co_await stream_.async_connect(addresses, kAsTuple);
    if (!error) stream_.socket().set_option(tcp::no_delay(true));
    co_return error;
  }

  asio::awaitable<Exchange> exchange(const Message& message, const OnBody& on_body) {
    Exchange result;
    const auto [write_error, written] = co_await http::async_write(stream_, message, kAsTuple);
    if (write_error) {
      result.error = write_error;
      co_return result;
    }
    http::response_parser<http::string_body> parser;
    parser.body_limit(boost::none);
    const auto [head_error, head] =
        co_await http::async_read_header(stream_, buffer_, parser, kAsTuple);
    if (head_error) {
      result.error = head_error;
      co_return result;
    }
    result.status = static_cast<int>(parser.get().result_int());
    // Not eager: an eager parser waits for the next chunk before it returns this one.
    std::string& body = parser.get().body();
    while (!parser.is_done() && !result.error) {
      const auto [error, read] = co_await http::async_read_some(stream_, buffer_, parser, kAsTuple);
      result.error = error;
      if (!body.empty()) on_body(result.status, body);
      body.clear();
    }
    result.keep_alive = !result.error && parser.keep_alive();
    co_return result;
  }

 private:
  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
};

HttpClient::HttpClient(asio::io_context& context, const ServerUrl& url)
    : context_(context), url_(url), addresses_(std::make_unique<Addresses>()) {
  error_code error;
  addresses_->list = tcp::resolver(context).resolve(url.host, url.port, error);
  if (error) throw SetupError(fmt::format("{}: {}", host_header(url), error.message()));
}

HttpClient::~HttpClient() = default;

asio::awaitable<HttpOutcome> HttpClient::send(HttpRequest request, OnBody on_body) {
  const auto deadline = std::chrono::steady_clock::now() +
                        std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                            std::chrono::duration<double>(request.timeout_seconds));
  const Message message = message_of(request, url_);
  for (;;) {
    std::unique_ptr<Connection> connection;
    const bool reused = !idle_.empty();
    if (reused) {
      connection = std::move(idle_.back());
      idle_.pop_back();
    } else {
      connection = std::make_unique<Connection>(context_);
    }
    connection->expire_at(deadline);
    if (!reused) {
      const error_code error = co_await connection->connect(addresses_->list);
      if (error) co_return HttpOutcome{.status = 0, .error = words_for(error, request)};
    }
    const Connection::Exchange result = co_await connection->exchange(message, on_body);
    const bool timed_out = result.error == beast::error::timeout;
    if (reused && result.error && result.status == 0 && !timed_out) continue;
    if (result.keep_alive) {
      connection->clear_deadline();
      idle_.push_back(std::move(connection));
    }
    HttpOutcome outcome{.status = result.status, .error = {}};
    if (result.error) outcome.error = words_for(result.error, request);
    co_return outcome;
  }
}

}  // namespace octavo::bench
