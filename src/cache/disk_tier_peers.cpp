// The part of the disk tier that holds pages of other processes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/sha256.h"
#include "cache/disk_tier.h"

namespace octavo {
namespace {

constexpr uint64_t kHitsPerProof = 16;

}  // namespace

std::vector<DiskRecord> DiskTier::common_pages(size_t most) const {
  std::vector<DiskRecord> found;
  const Lock lock(mutex_);
  for (int slot = 0; !clearing_ && slot < index_.slots(); ++slot) {
    if (may_share(slot)) found.push_back(index_.at(slot));
  }
  const auto recent = [](const DiskRecord& a, const DiskRecord& b) { return a.stamp > b.stamp; };
  std::ranges::sort(found, recent);
  if (found.size() > most) found.resize(most);
  return found;
}

// A page from elsewhere is not passed on before it is proven.
bool DiskTier::may_share(int slot) const {
  return index_.used(slot) && index_.at(slot).common && !index_.at(slot).received;
}

bool DiskTier::are_common(std::span<const PageKey> keys) const {
  const Lock lock(mutex_);
  return !clearing_ && std::ranges::all_of(keys, [&](const PageKey& key) {
    const int slot = index_.slot(key);
    return slot >= 0 && may_share(slot);
  });
}

size_t DiskTier::free_slots() const {
  const Lock lock(mutex_);
  return static_cast<size_t>(std::max(0, most_slots_ - index_.pages()));
}

std::string DiskTier::fingerprint() const {
  const std::string& facts = options_.store.fingerprint;
  const Sha256Digest digest =
      sha256({reinterpret_cast<const uint8_t*>(facts.data()), facts.size()});
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

bool DiskTier::unproven(const PageKey& key) const {
  // A page that waits to be written can be read already.
  if (const auto waiting = waiting_.find(key); waiting != waiting_.end())
    return waiting->second->purpose != Purpose::kSave;
  const int slot = index_.slot(key);
  return slot >= 0 && index_.at(slot).received;
}

bool DiskTier::receive(const PageKey& key, const std::optional<PageKey>& parent, const Fill& fill) {
  {
    const Lock lock(mutex_);
    if (refuses_received_ || !writable() || writes_.size() >= most_staged()) return false;
    if (index_.has(key) || waiting_.contains(key)) return true;
  }
  holds_received_ = true;
  return enqueue(
      {.key = key, .parent = parent, .bytes = {}, .purpose = Purpose::kReceive, .common = true},
      fill);
}

bool DiskTier::wants_proof(std::span<const PageKey> keys) {
  const Lock lock(mutex_);
  if (std::ranges::none_of(keys, [&](const PageKey& key) { return unproven(key); })) return false;
  return unproven_hits_++ % kHitsPerProof == 0;
}

void DiskTier::prove(const PageKey& key, const Fill& fill) {
  {
    const Lock lock(mutex_);
    if (!unproven(key) || waiting_.contains(key) || !writable() || writes_.size() >= most_staged())
      return;
  }
  enqueue({.key = key, .parent = {}, .bytes = {}, .purpose = Purpose::kProve}, fill);
}

void DiskTier::prove_one(Lock& lock) {
  const auto write = writes_.begin();
  const int slot = index_.slot(write->key);
  const bool still_there = slot >= 0 && index_.at(slot).received;
  bool equal = false;
  bool readable = false;
  if (still_there) {
    const DiskRecord record = index_.at(slot);
    lock.unlock();
    Bytes page(page_bytes());
    readable = store_->read(slot, record, page);
    equal = readable && page == write->bytes;
    lock.lock();
  }
  if (equal) {
    index_.set_proven(slot);
    ++stats_.proven;
  }
  end_write();
  if (readable && !equal) refute();
}

bool DiskTier::take_refuted() {
  if (!refuted_.exchange(false)) return false;
  holds_received_ = false;
  return true;
}

void DiskTier::refute() {
  ++stats_.refuted;
  refuses_received_ = true;
  refuted_ = true;
  clearing_ = true;  // pages computed after it are wrong as well
  if (options_.on_warning)
    options_.on_warning(
        "--prefix-peer: a page from the peer differs from the one computed here; the prefix cache "
        "is "
        "emptied, and no more pages are fetched. Check that both machines run the same program and "
        "model files, and their memory");
}

}  // namespace octavo
