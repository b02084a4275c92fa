// disk_index.h - maps pages to slots of the file and chooses the page to evict. No MLX. One thread
// at a time.
#pragma once

#include <array>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/page_key.h"

namespace octavo {

// One page on disk.
struct DiskRecord {
  PageKey key;
  std::optional<PageKey> parent = {};      // the previous page, without which this one is useless
  uint64_t stamp = 0;                      // last use; higher is more recent
  std::array<uint64_t, 2> checksums = {};  // of its bytes
  bool common = false;                     // of the common namespace: other processes may have it
  bool received = false;                   // from another process, and not yet computed here
};

class DiskIndex {
 public:
  bool has(const PageKey& key) const { return slots_.contains(key); }
  bool used(int slot) const { return records_[static_cast<size_t>(slot)].has_value(); }
  // Its slot, or -1.
  int slot(const PageKey& key) const;
  const DiskRecord& at(int slot) const { return *records_[static_cast<size_t>(slot)]; }

  // The slot must be free and the key absent.
  void add(int slot, const DiskRecord& record);
  void remove(int slot);
  // Records a use at `stamp`.
  void touch(int slot, uint64_t stamp);
  // The page's bytes are those that this process computes.
  void set_proven(int slot);
  void clear();

  // The lowest free slot below `end`, or -1.
  int free_slot(int end) const;
  // The slot of the least recently used page without a successor, or -1 if empty. The beginning of
  // a prefix is thus evicted after its end.
  int oldest() const { return leaves_.empty() ? -1 : leaves_.begin()->second; }

  int pages() const { return static_cast<int>(slots_.size()); }
  int slots() const { return static_cast<int>(records_.size()); }  // one past the highest

 private:
  int parent_slot(const DiskRecord& record) const;

  std::vector<std::optional<DiskRecord>> records_;  // by slot
  std::vector<int> children_;                       // by slot
  std::set<int> free_;                              // below slots()
  std::unordered_map<PageKey, int, PageKeyHash> slots_;
  std::set<std::pair<uint64_t, int>> leaves_;  // stamp, slot
};

}  // namespace octavo
