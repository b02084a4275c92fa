// Reads HTTP/1.1 byte streams through the server's reader and prints how it divides them into
// requests, for comparison with other parsers.
//
// usage: http_framing < STREAMS
//
// Each line of standard input is one stream: pieces in hexadecimal, separated by spaces, which
// arrive one after another. Each line of output is a JSON object: "requests", the complete requests
// with method, path, query and body in hexadecimal, and "end": "refused" if the reader answered with
// an error, "closed" if a request asked to close the connection, otherwise "end".
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "server/http/client_socket.h"
#include "server/http/http_reader.h"
#include "server/server_context.h"
#include "support/fake_engine.h"

namespace octavo::server {
namespace {

using boost::asio::ip::tcp;

int hex_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  OCTAVO_CHECK(digit >= 'a' && digit <= 'f');
  return digit - 'a' + 10;
}

std::string from_hex(std::string_view text) {
  OCTAVO_CHECK(text.size() % 2 == 0);
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1]));
  return bytes;
}

std::string to_hex(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

struct Framing {
  std::string requests = {};  // JSON objects, separated by commas
  const char* end = "end";

  void add(const HttpRequest& request, const std::string& body) {
    if (!requests.empty()) requests += ',';
    requests += fmt::format(R"({{"method":"{}","path":"{}","query":"{}","body":"{}"}})",
                            to_hex(request.method), to_hex(request.path), to_hex(request.query),
                            to_hex(body));
  }
};

// As a connection does, without the responses.
Awaitable<void> read_requests(tcp::socket socket, ServerContext& context, Framing& framing) {
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
  tcp::socket reader(boost::asio::io_context& io) {
    tcp::socket socket(io);
    socket.assign(tcp::v4(), ends_[1]);
    return socket;
  }
  // Streams are shorter than the socket's buffer. The reader may have closed its end.
  void send(const std::string& bytes) {
    const ssize_t sent = ::send(ends_[0], bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    OCTAVO_CHECK(sent < 0 || static_cast<size_t>(sent) == bytes.size());
  }
  void end() { ::shutdown(ends_[0], SHUT_WR); }

 private:
  std::array<int, 2> ends_ = {};
};

Framing framing_of(const std::string& line, boost::asio::io_context& io, ServerContext& context) {
  SocketPair pair;
  Framing framing;
  bool done = false;
  boost::asio::co_spawn(io, read_requests(pair.reader(io), context, framing),
                        [&done](const std::exception_ptr& error) {
                          done = true;
                          if (error) std::rethrow_exception(error);
                        });
  std::istringstream pieces(line);
  for (std::string piece; pieces >> piece;) {
    pair.send(from_hex(piece));
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

void run() {
  FakeEngine engine(FakeEngineOptions{});
  const api::ServedModel model = engine.served();
  const ServerOptions options;
  boost::asio::io_context io;
  ServerContext context(io, model, options);
  for (std::string line; std::getline(std::cin, line);) {
    const Framing framing = framing_of(line, io, context);
    fmt::print("{{\"requests\":[{}],\"end\":\"{}\"}}\n", framing.requests, framing.end);
    std::fflush(stdout);
  }
  io.restart();
  io.poll();  // handlers of cancelled timers
}

}  // namespace
}  // namespace octavo::server

int main() {
  try {
    octavo::server::run();
  } catch (const std::exception& error) {
    fmt::print(stderr, "http_framing: {}\n", error.what());
    return 1;
  }
}
