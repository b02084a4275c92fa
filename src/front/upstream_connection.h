// upstream_connection.h - a connection to a child, for one request after another in HTTP/1.1. I/O
// thread only; owned by shared_ptr. No MLX.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "server/http/exchange.h"

namespace octavo::front {

using server::Awaitable;

class UpstreamConnection : public std::enable_shared_from_this<UpstreamConnection> {
 public:
  using Clock = std::chrono::steady_clock;

  enum class Got : uint8_t {
    kHead,     // head() is there
    kBody,     // take_body() returns more
    kEnd,      // of the response
    kSilence,  // nothing until the deadline
    kBroken,   // the child closed the connection, or abort() was called
  };

  explicit UpstreamConnection(boost::asio::io_context& io) : socket_(io), timer_(io) {}

  // False if no child listens at the path.
  Awaitable<bool> connect(const std::string& path);
  // Sends a request. Failures show when the response is read: a child may answer before it has read
  // the whole body.
  Awaitable<void> send(std::string_view head, std::string_view body);
  // Waits for the next piece of the response. kBody: more than `known` bytes of the body have not
  // been taken.
  Awaitable<Got> read(Clock::time_point deadline, size_t known = 0);

  // After kHead.
  const boost::beast::http::response<boost::beast::http::string_body>& head() const {
    return parser_->get();
  }
  // What has arrived of the body since the last call.
  std::string take_body() { return std::exchange(parser_->get().body(), {}); }
  size_t body_size() const { return parser_->get().body().size(); }

  // Whether bytes of the current response have arrived.
  bool answered() const { return answered_; }
  // After kEnd: whether another request can be sent.
  bool reusable() const;
  // Whether the child has closed the idle connection.
  bool closed();
  // Makes the operation that is waiting, and all later ones, return at once.
  void abort();

 private:
  bool parse();
  void arm(Clock::time_point deadline);

  boost::asio::local::stream_protocol::socket socket_;
  boost::asio::steady_timer timer_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::response_parser<boost::beast::http::string_body>> parser_;
  bool head_passed_ = false;
  bool answered_ = false;
  bool ended_ = false;  // no more bytes will come
  bool aborted_ = false;
};

}  // namespace octavo::front
