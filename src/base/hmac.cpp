#include "base/hmac.h"

#include <algorithm>
#include <string>

namespace octavo {
namespace {

constexpr size_t kHmacBlock = 64;

Sha256Digest digest_of_bytes(std::string_view bytes) {
  return sha256({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

std::string_view bytes_in(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

Sha256Digest hmac_sha256(std::string_view key, std::string_view message) {
  std::string block(key);
  if (block.size() > kHmacBlock) block = bytes_in(digest_of_bytes(key));
  block.resize(kHmacBlock, '\0');
  const auto padded = [&](char with) {
    std::string result = block;
    std::ranges::for_each(result, [&](char& c) { c = static_cast<char>(c ^ with); });
    return result;
  };
  const Sha256Digest inner = digest_of_bytes(padded(0x36).append(message));
  return digest_of_bytes(padded(0x5c).append(bytes_in(inner)));
}

}  // namespace octavo
