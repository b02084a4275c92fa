// server_url.h - where a server is, read from a base URL. No MLX.
#pragma once

#include <string>
#include <string_view>

namespace octavo::bench {

struct ServerUrl {
  std::string host;         // without the brackets of an IPv6 address
  std::string port = "80";  // as the resolver takes it
  std::string prefix = {};  // stands before every path; no slash at its end
};

// "http://host[:port][/prefix]". Throws SetupError, also for https, which is not spoken here.
ServerUrl parse_server_url(std::string_view url);

// As the Host header names the server.
std::string host_header(const ServerUrl& url);

}  // namespace octavo::bench
