#include "text/dialects/call_id.h"

#include <fmt/format.h>

#include <vector>

#include "base/sha256.h"

namespace octavo {

std::string call_id(std::string_view request, int choice, int call, int length) {
  constexpr std::string_view kLetters =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr size_t kUsual = 24;
  const std::string seed = fmt::format("{}/{}/{}", request, choice, call);
  const Sha256Digest digest = sha256(std::vector<uint8_t>(seed.begin(), seed.end()));
  std::string id = length == 0 ? "call_" : "";
  const size_t size = length == 0 ? kUsual : static_cast<size_t>(length);
  for (size_t i = 0; i < size; ++i) id += kLetters[digest[i % digest.size()] % kLetters.size()];
  return id;
}

}  // namespace octavo
