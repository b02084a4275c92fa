// cluster_secret.h - what the ranks of a cluster prove to each other: that they know one secret.
// Immutable, any thread. No MLX.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/sha256.h"

namespace octavo {

class ClusterSecret {
 public:
  explicit ClusterSecret(std::string secret) : secret_(std::move(secret)) {}
  // The file's content without white space at its end. Both throw SetupError that starts with
  // `name` (a flag) or the variable's name if the secret cannot be read, or is shorter than 16
  // characters.
  static ClusterSecret from_file(std::string_view name, const std::filesystem::path& path);
  static ClusterSecret from_environment(const char* variable);

  // HMAC-SHA256 of the message.
  Sha256Digest proof(std::string_view message) const;
  // In constant time.
  bool proves(const Sha256Digest& proof, std::string_view message) const;

 private:
  std::string secret_;
};

}  // namespace octavo
