// cache_namespace.h - keeps the cached prefixes of tenants apart, outside the block hashes, which
// stay equal to vLLM's. No MLX.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/sha256.h"
#include "cache/block_hash.h"

namespace octavo {

// Sequences of different namespaces share no cached prefix. All zero: the common namespace.
using CacheNamespace = Sha256Digest;

// The hash under which the disk tier keeps a block. In the common namespace it is the block's own
// hash. Namespaces are digests, so two of them meet only if SHA-256 is broken.
inline BlockHash in_namespace(BlockHash hash, const CacheNamespace& space) {
  for (size_t i = 0; i < hash.size(); ++i) hash[i] ^= space[i];
  return hash;
}

// The part of a namespace that belongs to an adapter whose files have this digest.
inline CacheNamespace namespace_of_adapter(const CacheNamespace& space,
                                           const Sha256Digest& digest) {
  std::array<uint8_t, 64> both;
  std::ranges::copy(space, both.begin());
  std::ranges::copy(digest, both.begin() + 32);
  return sha256(both);
}

}  // namespace octavo
