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

#include <boost/asio/io_context.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "server/server_context.h"
#include "support/fake_engine.h"
#include "support/http_framing.h"

namespace octavo::server {
namespace {

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

std::vector<std::string> pieces_of(const std::string& line) {
  std::vector<std::string> pieces;
  std::istringstream words(line);
  for (std::string word; words >> word;) pieces.push_back(from_hex(word));
  return pieces;
}

void run() {
  FakeEngine engine(FakeEngineOptions{});
  const api::ServedModel model = engine.served();
  const ServerOptions options;
  boost::asio::io_context io;
  ServerContext context(io, model, options);
  for (std::string line; std::getline(std::cin, line);) {
    const std::vector<std::string> pieces = pieces_of(line);
    const std::vector<std::string_view> views(pieces.begin(), pieces.end());
    const Framing framing = framing_of(views, io, context);
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
