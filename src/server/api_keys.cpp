#include "server/api_keys.h"

#include <string_view>

#include "base/error.h"
#include "base/sha256.h"

namespace octavo::server {
namespace {

// Digests have a fixed length and do not reveal how much of a key matched.
std::string digest_of(std::string_view key) {
  const std::vector<uint8_t> bytes(key.begin(), key.end());
  const Sha256Digest digest = sha256(bytes);
  return {digest.begin(), digest.end()};
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

std::string_view key_of(const HttpRequest& request) {
  constexpr std::string_view kBearer = "bearer ";
  const std::string_view value = request.header("Authorization");
  if (value.size() > kBearer.size() &&
      equal_ignoring_case(value.substr(0, kBearer.size()), kBearer))
    return value.substr(kBearer.size());
  return request.header("x-api-key");
}

}  // namespace

std::string owner_of(const HttpRequest& request) {
  const std::string_view key = key_of(request);
  return key.empty() ? "" : digest_of(key);
}

std::string owner_of_key(std::string_view key) { return digest_of(key); }

bool is_blank_key(std::string_view key) {
  return key.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (is_blank_key(key)) throw SetupError("an API key is empty; every key needs a value");
    digests_.push_back(digest_of(key));
  }
}

bool ApiKeys::allow(const HttpRequest& request) const {
  if (digests_.empty()) return true;
  const std::string_view key = key_of(request);
  if (key.empty()) return false;
  const std::string seen = digest_of(key);
  bool allowed = false;
  for (const std::string& digest : digests_) allowed |= equal_in_constant_time(seen, digest);
  return allowed;
}

}  // namespace octavo::server
