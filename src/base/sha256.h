// sha256.h - SHA-256 of a byte buffer.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace octavo {

using Sha256Digest = std::array<uint8_t, 32>;

Sha256Digest sha256(std::span<const uint8_t> bytes);

}  // namespace octavo
