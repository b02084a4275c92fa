// block_hash.h - names a block of tokens together with all that stood before it: vLLM's
// sha256_cbor, so that routers and other servers compute the same names. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/token_id.h"

namespace octavo {

using BlockHash = Sha256Digest;

// What else decides a block's K and V besides the tokens: adapter, salt, images. Empty: nothing.
using ExtraKeys = std::vector<std::string>;

// The parent of a sequence's first block.
const BlockHash& none_hash();

// SHA-256 over canonical CBOR of (parent, (tokens...), extra keys or null).
BlockHash hash_block(const BlockHash& parent, std::span<const TokenId> tokens,
                     const ExtraKeys& extra);

// The name that KV events carry: the digest's low 64 bits.
uint64_t short_hash(const BlockHash& hash);

}  // namespace octavo
