#include "front/upstream_connection.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <utility>

namespace octavo::front {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;

constexpr size_t kReadBytes = 64u << 10;
constexpr uint32_t kHeaderBytes = 1u << 20;

}  // namespace

Awaitable<bool> UpstreamConnection::connect(const std::string& path) {
  error_code error;
  co_await socket_.async_connect(asio::local::stream_protocol::endpoint(path),
                                 asio::redirect_error(asio::use_awaitable, error));
  if (!error) socket_.non_blocking(true, error);
  co_return !error && !aborted_;
}

Awaitable<void> UpstreamConnection::send(std::string_view head, std::string_view body) {
  parser_.emplace();
  parser_->eager(true);
  parser_->header_limit(kHeaderBytes);
  parser_->body_limit(boost::none);
  head_passed_ = answered_ = false;
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(head.data(), head.size()),
                                                   asio::buffer(body.data(), body.size())};
  error_code ignored;
  if (!aborted_)
    co_await asio::async_write(socket_, parts, asio::redirect_error(asio::use_awaitable, ignored));
}

// False if the bytes are not a response.
bool UpstreamConnection::parse() {
  if (parser_->is_done()) return true;
  error_code error;
  if (ended_) {
    if (!parser_->is_header_done()) return false;
    parser_->put_eof(error);
    return !error && parser_->is_done();
  }
  while (buffer_.size() > 0 && !parser_->is_done() && !error)
    buffer_.consume(parser_->put(buffer_.data(), error));
  return !error || error == http::error::need_more;
}

Awaitable<UpstreamConnection::Got> UpstreamConnection::read(Clock::time_point deadline,
                                                            size_t known) {
  const auto self = shared_from_this();
  while (true) {
    if (aborted_ || !parse()) co_return Got::kBroken;
    if (parser_->is_header_done() && !std::exchange(head_passed_, true)) co_return Got::kHead;
    if (parser_->get().body().size() > known) co_return Got::kBody;
    if (parser_->is_done()) co_return Got::kEnd;
    error_code error;
    buffer_.commit(socket_.read_some(buffer_.prepare(kReadBytes), error));
    if (!error) {
      answered_ = true;
    } else if (error != asio::error::would_block && error != asio::error::try_again) {
      ended_ = true;
    } else {
      if (Clock::now() >= deadline) co_return Got::kSilence;
      arm(deadline);
      co_await socket_.async_wait(asio::socket_base::wait_read,
                                  asio::redirect_error(asio::use_awaitable, error));
      timer_.cancel();
    }
  }
}

void UpstreamConnection::arm(Clock::time_point deadline) {
  if (deadline == Clock::time_point::max()) return;
  timer_.expires_at(deadline);
  timer_.async_wait([self = shared_from_this()](const error_code& cancelled) {
    if (cancelled || self->timer_.expiry() > Clock::now()) return;
    error_code ignored;
    self->socket_.cancel(ignored);
  });
}

bool UpstreamConnection::reusable() const {
  return !ended_ && !aborted_ && parser_->is_done() && parser_->keep_alive() && buffer_.size() == 0;
}

bool UpstreamConnection::closed() {
  char byte = 0;
  const auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  // An idle connection has nothing to say: bytes would belong to no request.
  return got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void UpstreamConnection::abort() {
  aborted_ = true;
  error_code ignored;
  socket_.cancel(ignored);
}

}  // namespace octavo::front
