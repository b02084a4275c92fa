#include "base/sha256.h"

#include <octavo_rust.h>

#include "base/error.h"

namespace octavo {

Sha256Digest sha256(std::span<const uint8_t> bytes) {
  Sha256Digest digest{};
  OCTAVO_CHECK(octavo_sha256(bytes.data(), bytes.size(), digest.data()) == OCTAVO_RUST_OK);
  return digest;
}

}  // namespace octavo
