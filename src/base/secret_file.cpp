#include "base/secret_file.h"

#include <fmt/format.h>

#include <cctype>
#include <fstream>
#include <random>

#include "base/error.h"

namespace octavo {
namespace {

constexpr size_t kMostSecretBytes = 4096;
constexpr size_t kSecretDigits = 64;

}  // namespace

std::string checked_secret(std::string text, std::string_view name) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.pop_back();
  if (text.size() < kLeastSecretBytes)
    throw SetupError(
        fmt::format("{} has fewer than {} characters; create a secret with: openssl rand -hex 32",
                    name, kLeastSecretBytes));
  return text;
}

std::string read_secret_file(const std::filesystem::path& path, std::string_view flag) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMostSecretBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.eof() || file.bad() || !file.is_open())
    throw SetupError(
        fmt::format("{}: cannot read {}, or it is larger than 4 KiB", flag, path.string()));
  text.resize(static_cast<size_t>(file.gcount()));
  return checked_secret(std::move(text), fmt::format("{}: {}", flag, path.string()));
}

std::string fresh_secret() {
  std::random_device random;
  std::string digits;
  while (digits.size() < kSecretDigits) digits += fmt::format("{:08x}", random());
  return digits;
}

}  // namespace octavo
