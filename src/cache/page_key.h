// page_key.h - identifies the content of a page across processes that serve the same model. No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cache/block_hash.h"

namespace octavo {

struct PageKey {
  // The last block of the page, or the block before the snapshot; see in_namespace().
  BlockHash block = {};
  // >= 0: the group of the page. < 0: page -1 - part of a snapshot.
  int32_t part = 0;

  bool operator==(const PageKey&) const = default;
};

inline PageKey snapshot_key(const BlockHash& block, size_t page) {
  return {block, -1 - static_cast<int32_t>(page)};
}

struct PageKeyHash {
  size_t operator()(const PageKey& key) const {
    uint64_t bits = 0;  // the bits of a digest are uniform
    std::memcpy(&bits, key.block.data(), sizeof(bits));
    return bits + static_cast<uint64_t>(key.part) * 0x9E3779B97F4A7C15u;
  }
};

}  // namespace octavo
