// block_hash.h - hashes a block of tokens together with everything before it: vLLM's sha256_cbor,
// so that routers and other servers compute the same hashes. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "base/token_id.h"

namespace octavo {

using BlockHash = Sha256Digest;

// What besides the tokens determines a block's K and V: adapter, salt, images. May be empty.
using ExtraKeys = std::vector<std::string>;

// The parent of a sequence's first block.
const BlockHash& none_hash();

// SHA-256 over canonical CBOR of (parent, (tokens...), extra keys or null).
BlockHash hash_block(const BlockHash& parent, std::span<const TokenId> tokens,
                     const ExtraKeys& extra);

// The id in KV events: the low 64 bits of the digest.
uint64_t short_hash(const BlockHash& hash);

}  // namespace octavo
