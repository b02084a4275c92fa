#include "distributed/socket_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>

#include "base/error.h"
#include "distributed/cluster_error.h"

namespace octavo {
namespace {

bool is_private_v4(uint32_t address) {
  const auto in = [&](uint32_t network, int bits) {
    return (address ^ network) >> (32 - bits) == 0;
  };
  return in(0x7F000000, 8) || in(0x0A000000, 8) || in(0xAC100000, 12) || in(0xC0A80000, 16) ||
         in(0xA9FE0000, 16) || in(0x64400000, 10);
}

bool is_private_v6(std::span<const uint8_t, 16> address) {
  const auto zeros = [&](size_t count) {
    return std::ranges::all_of(address.first(count), [](uint8_t byte) { return byte == 0; });
  };
  if (zeros(10) && address[10] == 0xFF && address[11] == 0xFF) {
    return is_private_v4(uint32_t{address[12]} << 24 | uint32_t{address[13]} << 16 |
                         uint32_t{address[14]} << 8 | address[15]);
  }
  if (zeros(15) && address[15] == 1) return true;
  const bool unique_local = (address[0] & 0xFE) == 0xFC;
  const bool link_local = address[0] == 0xFE && (address[1] & 0xC0) == 0x80;
  return unique_local || link_local;
}

}  // namespace

SocketAddress::SocketAddress(const sockaddr* address, socklen_t length) : length_(length) {
  OCTAVO_CHECK(length <= sizeof(storage_));
  std::memcpy(&storage_, address, length);
}

std::vector<SocketAddress> SocketAddress::resolve(const std::string& host, uint16_t port,
                                                  bool for_listening) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (for_listening ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    throw SetupError(fmt::format("cannot find the address of {}: {}", host, ::gai_strerror(error)));
  std::vector<SocketAddress> addresses;
  for (const addrinfo* next = found; next != nullptr; next = next->ai_next)
    if (next->ai_family == AF_INET || next->ai_family == AF_INET6)
      addresses.emplace_back(next->ai_addr, next->ai_addrlen);
  ::freeaddrinfo(found);
  if (addresses.empty())
    throw SetupError(fmt::format("{} has neither an IPv4 nor an IPv6 address", host));
  return addresses;
}

SocketAddress SocketAddress::of_peer(int socket) {
  SocketAddress address;
  address.length_ = sizeof(address.storage_);
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0)
    return {};
  return address;
}

SocketAddress SocketAddress::of_local(int socket) {
  SocketAddress address;
  address.length_ = sizeof(address.storage_);
  if (::getsockname(socket, reinterpret_cast<sockaddr*>(&address.storage_), &address.length_) != 0)
    return {};
  return address;
}

uint16_t SocketAddress::port() const {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

std::string SocketAddress::host() const {
  std::array<char, NI_MAXHOST> text = {};
  if (::getnameinfo(data(), length_, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "unknown";
  return text.data();
}

bool SocketAddress::is_private() const {
  if (family() == AF_INET)
    return is_private_v4(ntohl(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_addr.s_addr));
  if (family() == AF_INET6) {
    const auto& bytes = reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_addr.s6_addr;
    return is_private_v6(std::span<const uint8_t, 16>(bytes));
  }
  return false;
}

std::string join_address(std::string_view host, uint16_t port) {
  return host.find(':') == std::string_view::npos ? fmt::format("{}:{}", host, port)
                                                  : fmt::format("[{}]:{}", host, port);
}

std::pair<std::string, uint16_t> split_address(std::string_view address) {
  const auto refuse = [&] {
    throw WireError(fmt::format("\"{}\" is not an address of the form HOST:PORT", address));
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) refuse();
  const std::string_view digits = address.substr(colon + 1);
  uint16_t port = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size())
    refuse();
  std::string_view host = address.substr(0, colon);
  if (host.front() == '[') {
    if (host.size() < 3 || host.back() != ']') refuse();
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    refuse();
  }
  return {std::string(host), port};
}

}  // namespace octavo
