#include "cache/disk_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace octavo {
namespace {

constexpr std::chrono::seconds kFlushAtEnd{5};

}  // namespace

uint64_t disk_staging_bytes(const CachePlan& plan) {
  constexpr uint64_t kUsual = 64u << 20;
  return std::max(kUsual, 2 * uint64_t{plan.bytes_per_state()});
}

DiskTier::DiskTier(DiskTierOptions options)
    : options_(std::move(options)), store_(DiskStore::open(options_.store)) {
  stats_.on = true;
  take_over_store();
  thread_ = std::thread([this] { run(); });
}

DiskTier::~DiskTier() {
  flush(kFlushAtEnd);
  {
    const Lock lock(mutex_);
    stopping_ = true;
    wake_.notify_one();
  }
  thread_.join();
}

size_t DiskTier::most_staged() const {
  return std::max<size_t>(2, options_.staging_bytes / page_bytes());
}

bool DiskTier::writable() const {
  return open_ && !stopping_ && !clearing_ && Clock::now() >= writes_off_until_;
}

std::vector<bool> DiskTier::has(std::span<const PageKey> keys) const {
  const Lock lock(mutex_);
  std::vector<bool> found;
  found.reserve(keys.size());
  for (const PageKey& key : keys)
    found.push_back(!clearing_ && (index_.has(key) || waiting_.contains(key)));
  return found;
}

int DiskTier::room() const {
  const Lock lock(mutex_);
  return writable() ? static_cast<int>(most_staged() - std::min(most_staged(), writes_.size())) : 0;
}

bool DiskTier::save(const PageKey& key, const std::optional<PageKey>& parent, const Fill& fill,
                    bool common) {
  {
    const Lock lock(mutex_);
    if (!writable() || writes_.size() >= most_staged()) {
      ++stats_.dropped;
      return false;
    }
    if (index_.has(key) || waiting_.contains(key)) return true;
  }
  return enqueue({.key = key, .parent = parent, .bytes = {}, .common = common}, fill);
}

bool DiskTier::enqueue(Write write, const Fill& fill) {
  {
    const Lock lock(mutex_);
    if (!spare_.empty()) {
      write.bytes = std::move(spare_.back());
      spare_.pop_back();
    }
  }
  write.bytes.resize(page_bytes());
  fill(write.bytes);
  const Lock lock(mutex_);
  if (waiting_.contains(write.key)) return true;
  const PageKey key = write.key;
  writes_.push_back(std::move(write));
  waiting_.emplace(key, std::prev(writes_.end()));
  wake_.notify_one();
  return true;
}

void DiskTier::announce(const PageKey& key, const CachedBlock& block) {
  const Lock lock(mutex_);
  if (options_.observer == nullptr || clearing_) return;
  if (index_.has(key)) {
    report_stored(key, block);
  } else if (waiting_.contains(key)) {
    unreported_.emplace(key, block);
  }
}

void DiskTier::report_stored(const PageKey& key, const CachedBlock& block) {
  if (reported_.insert(key).second) options_.observer->stored(block, CacheMedium::kDisk);
}

void DiskTier::report_removed(const PageKey& key) {
  // The cache was cleared, which has been reported.
  if (reported_.erase(key) == 0 || clearing_) return;
  options_.observer->removed(key.part, short_hash(key.block), CacheMedium::kDisk);
}

void DiskTier::on_arrival(std::function<void()> callback) {
  const Lock lock(arrival_mutex_);
  on_arrival_ = std::move(callback);
}

std::shared_ptr<DiskTier::Read> DiskTier::read(std::vector<PageKey> keys) {
  auto read = std::make_shared<Read>(std::move(keys));
  const Lock lock(mutex_);
  reads_.push_back(read);
  wake_.notify_one();
  return read;
}

std::vector<DiskTier::Arrival> DiskTier::take(Read& read) {
  const Lock lock(mutex_);
  wake_.notify_one();  // a buffer is free again
  return std::exchange(read.arrived_, {});
}

void DiskTier::clear() {
  const Lock lock(mutex_);
  if (!open_) return;
  clearing_ = true;
  wake_.notify_one();
}

bool DiskTier::flush(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  return written_.wait_for(lock, timeout, [&] { return writes_.empty() && !clearing_; });
}

DiskStats DiskTier::stats() const {
  const Lock lock(mutex_);
  DiskStats stats = stats_;
  stats.shut_out = !open_;
  stats.writes_off = Clock::now() < writes_off_until_;
  stats.pages = static_cast<uint64_t>(index_.pages());
  return stats;
}

void DiskTier::run() {
  Lock lock(mutex_);
  while (true) {
    const bool worked = work(lock);
    if (writes_.empty()) written_.notify_all();
    if (stopping_) return;
    if (worked) continue;
    // Nothing signals cancelled reads or timeouts, so poll.
    wake_.wait_for(lock, open_ ? std::chrono::milliseconds(1000) : options_.lock_retry);
  }
}

bool DiskTier::work(Lock& lock) {
  if (!open_) return retry_open(lock);
  if (clearing_) {
    clear_all(lock);
    return true;
  }
  if (stopping_) return false;
  if (read_one(lock)) return true;
  if (writes_.empty()) return false;
  if (writes_.front().purpose == Purpose::kProve) {
    prove_one(lock);
  } else {
    write_one(lock);
  }
  return true;
}

bool DiskTier::retry_open(Lock& lock) {
  if (Clock::now() < next_lock_) return false;
  lock.unlock();
  std::unique_ptr<DiskStore> store;
  try {
    store = DiskStore::open(options_.store);
  } catch (const SetupError&) {  // the folder is gone; it may come back
  }
  lock.lock();
  store_ = std::move(store);
  take_over_store();
  return open_;
}

void DiskTier::take_over_store() {
  if (!store_) {
    const bool first = next_lock_ == Clock::time_point{};
    next_lock_ = Clock::now() + options_.lock_retry;
    if (first && options_.on_warning)
      options_.on_warning(fmt::format(
          "--prefix-disk {}: another process uses this folder; prefix pages stay in memory until "
          "it ends. Use a separate folder for each process",
          options_.store.folder.string()));
    return;
  }
  auto records = store_->take_records();
  std::ranges::sort(records, std::less<>(), [](const auto& entry) { return entry.second.stamp; });
  for (const auto& [slot, record] : records) {
    stamp_ = std::max(stamp_, record.stamp);
    // The same page twice: the process was killed between two writes of it.
    if (!index_.has(record.key)) index_.add(slot, record);
    if (record.received) holds_received_ = true;
  }
  stats_.bytes = store_->bytes();
  most_slots_ = store_->most_slots();
  open_ = true;
}

std::shared_ptr<DiskTier::Read> DiskTier::next_read() {
  std::shared_ptr<Read> next;
  size_t staged = 0;
  std::erase_if(reads_, [&](const std::weak_ptr<Read>& weak) {
    const auto read = weak.lock();
    if (!read) return true;
    staged += read->arrived_.size();
    if (read->next_ >= read->keys_.size()) return true;
    // The read with the least progress, so that none has to wait for another to finish.
    if (!next || read->next_ < next->next_) next = read;
    return false;
  });
  return staged < most_staged() ? next : nullptr;
}

bool DiskTier::read_one(Lock& lock) {
  const auto read = next_read();
  if (!read) return false;
  const size_t number = read->next_++;
  const PageKey key = read->keys_[number];
  Arrival arrival{number, {}};
  const int slot = index_.slot(key);
  if (const auto waiting = waiting_.find(key); waiting != waiting_.end()) {
    arrival.bytes = waiting->second->bytes;
  } else if (slot >= 0) {
    const DiskRecord record = index_.at(slot);
    lock.unlock();
    arrival.bytes.resize(page_bytes());
    const bool good = store_->read(slot, record, arrival.bytes);
    lock.lock();
    if (good) {
      index_.touch(slot, ++stamp_);
    } else {
      arrival.bytes.clear();
      ++stats_.corrupt;
      lock.unlock();
      store_->erase(slot);
      lock.lock();
      index_.remove(slot);
      report_removed(key);
    }
  }
  if (arrival.bytes.empty()) {
    read->next_ = read->keys_.size();
  } else {
    ++stats_.read;
  }
  read->arrived_.push_back(std::move(arrival));
  lock.unlock();
  {
    const Lock arrival_lock(arrival_mutex_);
    if (on_arrival_) on_arrival_();
  }
  lock.lock();
  return true;
}

int DiskTier::slot_for_one_more(Lock& lock) {
  while (true) {
    const int slot = index_.free_slot(store_->most_slots());
    if (slot >= 0) return slot;
    lock.unlock();
    const bool more = store_->drop_other_model();
    lock.lock();
    most_slots_ = store_->most_slots();
    if (!more) break;
  }
  const int oldest = index_.oldest();
  if (oldest < 0) return -1;
  report_removed(index_.at(oldest).key);
  index_.remove(oldest);
  ++stats_.evicted;
  return oldest;
}

void DiskTier::write_one(Lock& lock) {
  const auto write = writes_.begin();
  DiskRecord record{.key = write->key,
                    .parent = write->parent,
                    .stamp = ++stamp_,
                    .common = write->common,
                    .received = write->purpose == Purpose::kReceive};
  const bool wanted = Clock::now() >= writes_off_until_ && !index_.has(record.key) &&
                      !(record.received && refuses_received_);
  const int slot = wanted ? slot_for_one_more(lock) : -1;
  lock.unlock();
  // The page stays in place meanwhile: only this thread removes writes.
  const bool written = slot >= 0 && store_->write(slot, record, write->bytes);
  const uint64_t bytes = store_->bytes();
  lock.lock();
  stats_.bytes = bytes;
  if (written) {
    index_.add(slot, record);
    ++(record.received ? stats_.received : stats_.written);
  } else if (slot >= 0) {
    ++stats_.write_errors;
    writes_off_until_ = Clock::now() + options_.write_retry;
    if (options_.on_warning)
      options_.on_warning(fmt::format("--prefix-disk: {}; writing is paused for {} s",
                                      store_->error(), options_.write_retry.count() / 1000));
  } else {
    ++stats_.dropped;
  }
  const auto unreported = unreported_.extract(write->key);
  if (written && unreported && !clearing_) report_stored(write->key, unreported.mapped());
  end_write();
}

void DiskTier::end_write() {
  const auto write = writes_.begin();
  waiting_.erase(write->key);
  if (spare_.size() + writes_.size() <= most_staged()) spare_.push_back(std::move(write->bytes));
  writes_.erase(write);
}

void DiskTier::clear_all(Lock& lock) {
  index_.clear();
  waiting_.clear();
  writes_.clear();
  unreported_.clear();
  reported_.clear();
  lock.unlock();
  store_->clear();
  const uint64_t bytes = store_->bytes();
  lock.lock();
  stats_.bytes = bytes;
  clearing_ = false;
}

}  // namespace octavo
