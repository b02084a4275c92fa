#include "cli/distributed/network_address.h"

#include <fmt/format.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <charconv>

#include "base/error.h"

namespace octavo {
namespace {

namespace ip = boost::asio::ip;
using boost::system::error_code;

[[noreturn]] void bad_address(std::string_view text, std::string_view flag) {
  throw SetupError(fmt::format(
      "{} {}: write HOST:PORT, for example 10.0.0.1:7000 or [fd00::1]:7000", flag, text));
}

struct AddressRange {
  uint32_t first;
  int bits;
};

constexpr std::array kPrivateRanges = {
    AddressRange{0x7f000000, 8},   // 127.0.0.0/8, loopback
    AddressRange{0x0a000000, 8},   // 10.0.0.0/8
    AddressRange{0xac100000, 12},  // 172.16.0.0/12
    AddressRange{0xc0a80000, 16},  // 192.168.0.0/16
    AddressRange{0xa9fe0000, 16},  // 169.254.0.0/16, link-local
    AddressRange{0x64400000, 10},  // 100.64.0.0/10, shared
};

bool is_private_v4(uint32_t address) {
  for (const AddressRange& range : kPrivateRanges)
    if ((address ^ range.first) >> (32 - range.bits) == 0) return true;
  return false;
}

}  // namespace

std::string NetworkAddress::text() const {
  return host.find(':') == std::string::npos ? fmt::format("{}:{}", host, port)
                                             : fmt::format("[{}]:{}", host, port);
}

NetworkAddress parse_network_address(std::string_view text, std::string_view flag) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0) bad_address(text, flag);
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    bad_address(text, flag);  // where the port begins is ambiguous
  }
  NetworkAddress address{.host = std::string(host)};
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), address.port);
  if (host.empty() || digits.empty() || error != std::errc() ||
      end != digits.data() + digits.size())
    bad_address(text, flag);
  return address;
}

bool is_private_address(const std::string& text) {
  error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return false;
  if (address.is_v4()) return is_private_v4(address.to_v4().to_uint());
  const ip::address_v6 v6 = address.to_v6();
  if (v6.is_v4_mapped()) return is_private_v4(ip::make_address_v4(ip::v4_mapped, v6).to_uint());
  const bool unique_local = (v6.to_bytes()[0] & 0xfe) == 0xfc;
  return v6.is_loopback() || v6.is_link_local() || unique_local;
}

std::string private_address_of(const std::string& host, std::string_view flag, bool allow_public) {
  boost::asio::io_context io;
  ip::tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(host, "", error);
  if (error || found.empty())
    throw SetupError(fmt::format("{} {}: {}", flag, host, error.message()));
  const std::string address = found.begin()->endpoint().address().to_string();
  if (!allow_public && !is_private_address(address)) {
    throw SetupError(fmt::format(
        "{} {}: {} is not a private address, and what the machines send each other is not "
        "encrypted; use an address of a private network or of WireGuard, or add "
        "--distributed-allow-public",
        flag, host, address));
  }
  return address;
}

}  // namespace octavo
