// disk_index.h - which slot of the file holds which page, and which page goes first when there is
// no room. No MLX. One thread at a time.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/page_key.h"

namespace octavo {

// What is known of one page on disk.
struct DiskRecord {
  PageKey key;
  std::optional<PageKey> parent = {};      // the page before it: without it this one is no use
  uint64_t stamp = 0;                      // when it was used last: higher is later
  std::array<uint64_t, 2> checksums = {};  // of its bytes
};

class DiskIndex {
 public:
  bool has(const PageKey& key) const { return slots_.contains(key); }
  // Its slot, or -1.
  int slot(const PageKey& key) const;
  const DiskRecord& at(int slot) const { return *records_[static_cast<size_t>(slot)]; }

  // The slot is free and the key is not there.
  void add(int slot, const DiskRecord& record);
  void remove(int slot);
  // It was used at `stamp`.
  void touch(int slot, uint64_t stamp);
  void clear();

  // The lowest slot below `end` that holds nothing, or -1.
  int free_slot(int end) const;
  // The slot of the page used longest ago among those that no other page comes behind; -1: empty.
  // So a beginning goes after what follows it.
  int oldest() const { return leaves_.empty() ? -1 : leaves_.begin()->second; }

  int pages() const { return static_cast<int>(slots_.size()); }
  int slots() const { return static_cast<int>(records_.size()); }  // one behind the highest

 private:
  int parent_slot(const DiskRecord& record) const;

  std::vector<std::optional<DiskRecord>> records_;  // by slot
  std::vector<int> children_;                       // by slot
  std::set<int> free_;                              // below slots()
  std::unordered_map<PageKey, int, PageKeyHash> slots_;
  std::set<std::pair<uint64_t, int>> leaves_;  // stamp, slot
};

}  // namespace octavo
