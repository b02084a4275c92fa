#include "prefix_peer/peer_secret.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>

#include "base/constant_time.h"
#include "base/hmac.h"
#include "base/secret_file.h"

namespace octavo {
namespace {

constexpr size_t kNonceDigits = 32;

std::string hex_of(const Sha256Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace

PeerSecret PeerSecret::from_file(const std::filesystem::path& path) {
  return PeerSecret(read_secret_file(path, "--prefix-peer-secret-file"));
}

std::string PeerSecret::proof(Side side, std::string_view path, std::string_view nonce,
                              std::string_view body) const {
  const Sha256Digest digest = sha256({reinterpret_cast<const uint8_t*>(body.data()), body.size()});
  return hex_of(hmac_sha256(
      secret_, fmt::format("{}\n{}\n{}\n{}", side == Side::kRequest ? "request" : "response", path,
                           nonce, hex_of(digest))));
}

bool PeerSecret::proves(std::string_view proof, Side side, std::string_view path,
                        std::string_view nonce, std::string_view body) const {
  return is_nonce(nonce) && equal_in_constant_time(proof, this->proof(side, path, nonce, body));
}

std::string fresh_nonce() {
  std::random_device random;
  std::string digits;
  while (digits.size() < kNonceDigits) digits += fmt::format("{:08x}", random());
  return digits;
}

bool is_nonce(std::string_view text) {
  return text.size() == kNonceDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace octavo
