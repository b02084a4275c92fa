// base64.h - bytes as text (RFC 4648, padded).
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace octavo::server {

inline void append_base64(std::string& out, std::span<const std::byte> bytes) {
  constexpr const char* kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (; !bytes.empty(); bytes = bytes.subspan(std::min<size_t>(3, bytes.size()))) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < bytes.size() ? std::to_integer<uint32_t>(bytes[i]) : 0);
    for (size_t i = 0; i < 4; ++i)
      out += i <= bytes.size() ? kDigits[group >> (18 - 6 * i) & 63] : '=';
  }
}

}  // namespace octavo::server
