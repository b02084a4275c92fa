// peer_secret.h - what replicas that share pages prove to each other: that they know one secret.
// Immutable, any thread. No MLX.
//
// Both sides of an exchange are proven by HMAC-SHA256 over the path, a random number of the one who
// asks, and the body, so a body that was changed on the way fails as well. Nothing is encrypted.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace octavo {

inline constexpr std::string_view kNonceHeader = "x-octavo-nonce";
inline constexpr std::string_view kProofHeader = "x-octavo-proof";

class PeerSecret {
 public:
  explicit PeerSecret(std::string secret) : secret_(std::move(secret)) {}
  // The file's content without white space at its end. Throws SetupError that names the flag if it
  // cannot be read, or is shorter than 16 characters.
  static PeerSecret from_file(const std::filesystem::path& path);

  enum class Side { kRequest, kResponse };
  // In hex.
  std::string proof(Side side, std::string_view path, std::string_view nonce,
                    std::string_view body) const;
  // In constant time.
  bool proves(std::string_view proof, Side side, std::string_view path, std::string_view nonce,
              std::string_view body) const;

 private:
  std::string secret_;
};

// 32 random hex digits.
std::string fresh_nonce();
bool is_nonce(std::string_view text);

}  // namespace octavo
