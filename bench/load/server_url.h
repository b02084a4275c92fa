// server_url.h - a server address, parsed from a base URL. No MLX.
#pragma once

#include <string>
#include <string_view>

namespace octavo::bench {

struct ServerUrl {
  std::string host;         // without the brackets of an IPv6 address
  std::string port = "80";  // number or service name
  std::string prefix = {};  // prepended to every path; no trailing slash
};

// url: "http://host[:port][/prefix]". Throws SetupError, also for https, which is not supported.
ServerUrl parse_server_url(std::string_view url);

// The value of the Host header.
std::string host_header(const ServerUrl& url);

}  // namespace octavo::bench
