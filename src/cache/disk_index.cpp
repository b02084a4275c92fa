#include "cache/disk_index.h"

#include "base/error.h"

namespace octavo {

int DiskIndex::slot(const PageKey& key) const {
  const auto found = slots_.find(key);
  return found == slots_.end() ? -1 : found->second;
}

int DiskIndex::parent_slot(const DiskRecord& record) const {
  return record.parent ? slot(*record.parent) : -1;
}

void DiskIndex::add(int slot, const DiskRecord& record) {
  const auto index = static_cast<size_t>(slot);
  while (records_.size() <= index) {
    free_.insert(slots());
    records_.emplace_back();
    children_.push_back(0);
  }
  OCTAVO_CHECK(free_.erase(slot) == 1);
  OCTAVO_CHECK(slots_.emplace(record.key, slot).second);
  records_[index] = record;
  children_[index] = 0;
  leaves_.emplace(record.stamp, slot);
  const int parent = parent_slot(record);
  if (parent >= 0 && children_[static_cast<size_t>(parent)]++ == 0)
    leaves_.erase({at(parent).stamp, parent});
}

void DiskIndex::remove(int slot) {
  const DiskRecord record = at(slot);
  const int parent = parent_slot(record);
  // A page that was added before its parent was not counted there.
  if (parent >= 0 && children_[static_cast<size_t>(parent)] > 0 &&
      --children_[static_cast<size_t>(parent)] == 0)
    leaves_.emplace(at(parent).stamp, parent);
  leaves_.erase({record.stamp, slot});
  slots_.erase(record.key);
  records_[static_cast<size_t>(slot)].reset();
  free_.insert(slot);
  while (!records_.empty() && !records_.back()) {
    free_.erase(slots() - 1);
    records_.pop_back();
    children_.pop_back();
  }
}

void DiskIndex::touch(int slot, uint64_t stamp) {
  DiskRecord& record = *records_[static_cast<size_t>(slot)];
  if (leaves_.erase({record.stamp, slot}) > 0) leaves_.emplace(stamp, slot);
  record.stamp = stamp;
}

void DiskIndex::set_proven(int slot) { records_[static_cast<size_t>(slot)]->received = false; }

void DiskIndex::clear() {
  records_.clear();
  children_.clear();
  free_.clear();
  slots_.clear();
  leaves_.clear();
}

int DiskIndex::free_slot(int end) const {
  if (!free_.empty()) return *free_.begin() < end ? *free_.begin() : -1;
  return slots() < end ? slots() : -1;
}

}  // namespace octavo
