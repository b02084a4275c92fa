// hmac.h - HMAC-SHA256 (RFC 2104).
#pragma once

#include <string_view>

#include "base/sha256.h"

namespace octavo {

Sha256Digest hmac_sha256(std::string_view key, std::string_view message);

}  // namespace octavo
