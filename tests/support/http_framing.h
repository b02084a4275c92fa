// http_framing.h - how the server's reader divides a stream of bytes into requests.
#pragma once

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "server/http/client_socket.h"
#include "server/http/http_reader.h"
#include "server/http_context.h"

namespace octavo::server {

inline std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

struct Framing {
  std::string requests = {};  // JSON objects, separated by commas; bytes in hexadecimal
  // "refused": the reader answered with an error; "closed": a request asked to close the connection
  const char* end = "end";

  void add(const HttpRequest& request, const std::string& body) {
    if (!requests.empty()) requests += ',';
    requests += fmt::format(R"({{"method":"{}","path":"{}","query":"{}","body":"{}"}})",
                            to_hex(request.method), to_hex(request.path), to_hex(request.query),
                            to_hex(body));
  }
};

// As a connection does, without the responses.
inline Awaitable<void> read_requests(boost::asio::ip::tcp::socket socket, HttpContext& context,
                                     Framing& framing) {
  const auto client = std::make_shared<ClientSocket>(std::move(socket));
  HttpReader reader(client, context);
  for (bool more = true; more;) {
    const std::optional<HttpRequest> request = co_await reader.read_head();
    HeldBody body;
    bool whole = false;
    if (request) {
      body.bytes = *context.bodies.try_lend(0);
      whole = co_await reader.read_body(body);
    }
    if (!whole) {
      if (reader.failure().response) framing.end = "refused";
      co_return;
    }
    framing.add(*request, body.text);
    more = reader.keep_alive();
  }
  framing.end = "closed";
}

// A pair of local sockets: the reader's, and the one the test writes to. Neither is on a network.
class SocketPair {
 public:
  SocketPair() { OCTAVO_CHECK(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends_.data()) == 0); }
  ~SocketPair() { ::close(ends_[0]); }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  // Call once; the result owns that end.
  boost::asio::ip::tcp::socket reader(boost::asio::io_context& io) {
    boost::asio::ip::tcp::socket socket(io);
    socket.assign(boost::asio::ip::tcp::v4(), ends_[1]);
    return socket;
  }
  // Streams are shorter than the socket's buffer. The reader may have closed its end.
  void send(std::string_view bytes) {
    const ssize_t sent = ::send(ends_[0], bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    OCTAVO_CHECK(sent < 0 || static_cast<size_t>(sent) == bytes.size());
  }
  void end() { ::shutdown(ends_[0], SHUT_WR); }

 private:
  std::array<int, 2> ends_ = {};
};

// The stream arrives in these pieces, one after another.
inline Framing framing_of(std::span<const std::string_view> pieces, boost::asio::io_context& io,
                          HttpContext& context) {
  SocketPair pair;
  Framing framing;
  bool done = false;
  boost::asio::co_spawn(io, read_requests(pair.reader(io), context, framing),
                        [&done](const std::exception_ptr& error) {
                          done = true;
                          if (error) std::rethrow_exception(error);
                        });
  for (const std::string_view piece : pieces) {
    pair.send(piece);
    io.restart();
    io.poll();
  }
  pair.end();
  while (!done) {
    io.restart();
    io.run_one();
  }
  return framing;
}

}  // namespace octavo::server
