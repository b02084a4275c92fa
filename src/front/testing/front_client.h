// front_client.h - sends one request to a server on a Unix socket and reads the response, for tests.
#pragma once

#include <string>
#include <string_view>

#include "front/testing/scripted_child.h"

namespace octavo::front {

struct ClientResponse {
  int status = 0;
  std::string head = {};
  std::string body = {};  // without chunks
  bool whole = false;     // the body has its end
};

inline int connect_to(const std::string& path) {
  const int handle = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = unix_address(path);
  OCTAVO_CHECK(::connect(handle, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
               0);
  return handle;
}

inline void send_text(int handle, const std::string& text) {
  OCTAVO_CHECK(::send(handle, text.data(), text.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(text.size()));
}

inline ClientResponse parse_response(const std::string& text) {
  ClientResponse response;
  const size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return response;
  response.status = std::stoi(text.substr(9, 3));
  response.head = text.substr(0, end + 2);
  std::string_view rest = std::string_view(text).substr(end + 4);
  if (response.head.find("chunked") == std::string::npos) {
    response.body = rest;
    response.whole = true;
    return response;
  }
  while (!rest.empty()) {
    const size_t line = rest.find("\r\n");
    if (line == std::string_view::npos) return response;
    const size_t size = std::stoul(std::string(rest.substr(0, line)), nullptr, 16);
    if (size == 0) {
      response.whole = true;
      return response;
    }
    response.body += rest.substr(line + 2, size);
    rest.remove_prefix(std::min(line + 2 + size + 2, rest.size()));
  }
  return response;
}

inline std::string read_all(int handle) {
  std::string text;
  char bytes[65536];
  for (ssize_t got; (got = ::recv(handle, bytes, sizeof(bytes), 0)) > 0;)
    text.append(bytes, static_cast<size_t>(got));
  return text;
}

// `headers`: whole lines.
inline std::string request_text(std::string_view method, std::string_view path,
                                std::string_view body, std::string_view headers = {}) {
  return fmt::format(
      "{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}"
      "Connection: close\r\nContent-Length: {}\r\n\r\n{}",
      method, path, headers, body.size(), body);
}

inline ClientResponse ask(const std::string& socket, std::string_view method, std::string_view path,
                          std::string_view body, std::string_view headers = {}) {
  const OwnedSocket connection(connect_to(socket));
  send_text(connection.handle(), request_text(method, path, body, headers));
  return parse_response(read_all(connection.handle()));
}

}  // namespace octavo::front
