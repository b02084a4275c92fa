// block_hash.h - hashes a block of tokens together with everything before it: vLLM's sha256_cbor,
// so that routers and other servers compute the same hashes. No MLX.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/sha256.h"
#include "base/token_id.h"

namespace octavo {

using BlockHash = Sha256Digest;

// Something besides the tokens that determines a block's K and V, or that separates equal ones. In
// vLLM a pair: ("lora", name), (image, its offset in the block) or ("cache_salt", salt).
struct ExtraKey {
  std::string name;
  std::variant<std::string, int64_t> value;

  bool operator==(const ExtraKey&) const = default;
};
inline constexpr const char* kAdapterKey = "lora";
inline constexpr const char* kSaltKey = "cache_salt";
inline ExtraKey adapter_key(std::string name) { return {kAdapterKey, std::move(name)}; }
inline ExtraKey salt_key(std::string salt) { return {kSaltKey, std::move(salt)}; }
inline ExtraKey image_key(std::string image, int64_t offset) { return {std::move(image), offset}; }

// Of one block, in vLLM's order: adapter, images, salt. May be empty.
using ExtraKeys = std::vector<ExtraKey>;

// The parent of a sequence's first block.
const BlockHash& none_hash();

// SHA-256 over canonical CBOR of (parent, (tokens...), extra keys or null).
BlockHash hash_block(const BlockHash& parent, std::span<const TokenId> tokens,
                     const ExtraKeys& extra);

// The id in KV events: the low 64 bits of the digest.
uint64_t short_hash(const BlockHash& hash);

}  // namespace octavo
