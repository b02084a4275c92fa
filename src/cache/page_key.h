// page_key.h - the name of a page's content: the same in every process that serves the same model.
// No MLX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cache/block_hash.h"

namespace octavo {

struct PageKey {
  BlockHash block = {};  // that the page ends with, or that the state stands behind
  // >= 0: the page of this group. Below: page -1 - part of the state's snapshot.
  int32_t part = 0;

  bool operator==(const PageKey&) const = default;
};

inline PageKey snapshot_key(const BlockHash& block, size_t page) {
  return {block, -1 - static_cast<int32_t>(page)};
}

struct PageKeyHash {
  size_t operator()(const PageKey& key) const {
    uint64_t bits = 0;  // a digest's bits are as good as random
    std::memcpy(&bits, key.block.data(), sizeof(bits));
    return bits + static_cast<uint64_t>(key.part) * 0x9E3779B97F4A7C15u;
  }
};

}  // namespace octavo
