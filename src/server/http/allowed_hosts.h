// allowed_hosts.h - checks the Host header of servers without API keys. Immutable.
//
// With DNS rebinding a web page reaches a server on this machine under the page's own host name, so
// the browser lets the page read the answers. Such a request always carries a name in Host; an
// address cannot be rebound.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::server {

class AllowedHosts {
 public:
  // Allowed are IP addresses, localhost, `listening` and `names`; "*" among the names allows all.
  // Names are compared without case and port.
  AllowedHosts(const std::string& listening, const std::vector<std::string>& names);

  // `host`: the value of the header. Empty (HTTP/1.0 without Host) is allowed: browsers always
  // send one.
  bool allow(std::string_view host) const;

 private:
  std::vector<std::string> names_;
  bool all_ = false;
};

}  // namespace octavo::server
