#include "distributed/cluster_secret.h"

#include <fmt/format.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "base/constant_time.h"
#include "base/error.h"
#include "base/hmac.h"

namespace octavo {
namespace {

constexpr size_t kLeastClusterSecret = 16;
constexpr size_t kMostClusterSecret = 4096;

ClusterSecret trimmed_secret(std::string_view name, std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  if (text.size() < kLeastClusterSecret)
    throw SetupError(fmt::format(
        "{}: the secret has fewer than {} characters; create one with: openssl rand -hex 32", name,
        kLeastClusterSecret));
  return ClusterSecret(std::move(text));
}

std::string_view text_of_digest(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace

ClusterSecret ClusterSecret::from_file(std::string_view name, const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostClusterSecret + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() || file.bad() || !file.is_open())
    throw SetupError(
        fmt::format("{}: cannot read {}, or it is larger than 4 KiB", name, path.string()));
  text.resize(static_cast<size_t>(file.gcount()));
  return trimmed_secret(name, std::move(text));
}

ClusterSecret ClusterSecret::from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) throw SetupError(fmt::format("{} is not set", variable));
  return trimmed_secret(variable, text);
}

Sha256Digest ClusterSecret::proof(std::string_view message) const {
  return hmac_sha256(secret_, message);
}

bool ClusterSecret::proves(const Sha256Digest& proof, std::string_view message) const {
  return equal_in_constant_time(text_of_digest(proof), text_of_digest(this->proof(message)));
}

}  // namespace octavo
