#include "prefix_peer/peer_secret.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "base/constant_time.h"
#include "base/error.h"
#include "base/hmac.h"

namespace octavo {
namespace {

constexpr size_t kLeastSecret = 16;
constexpr size_t kMostSecret = 4096;
constexpr size_t kNonceDigits = 32;

std::string hex_of(const Sha256Digest& digest) {
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace

PeerSecret PeerSecret::from_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostSecret + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() || file.bad() || !file.is_open())
    throw SetupError(fmt::format(
        "--prefix-peer-secret-file: cannot read {}, or it is larger than 4 KiB", path.string()));
  text.resize(static_cast<size_t>(file.gcount()));
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  if (text.size() < kLeastSecret)
    throw SetupError(fmt::format(
        "--prefix-peer-secret-file: {} has fewer than {} characters; create a secret with: openssl "
        "rand -hex 32",
        path.string(), kLeastSecret));
  return PeerSecret(std::move(text));
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
