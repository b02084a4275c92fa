// disk_tier.h - prefix pages on disk, behind those in memory: a thread of its own writes them and
// reads them back. No MLX. Any thread.
//
// A cache: what cannot be written is dropped, and what cannot be read back bit for bit is not
// there. Nobody waits for the disk.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/disk_stats.h"
#include "cache/disk_store.h"

namespace octavo {

// For pages being copied to the disk, and as many again on their way back: some, and a snapshot of
// the state whole.
uint64_t disk_staging_bytes(const CachePlan& plan);

struct DiskTierOptions {
  DiskStoreOptions store;
  uint64_t staging_bytes = 64u << 20;             // to the disk, and as many again back
  std::chrono::milliseconds lock_retry{5'000};    // while another process has the folder
  std::chrono::milliseconds write_retry{60'000};  // after the disk refused a page
  // On the tier's thread: a line for people.
  std::function<void(const std::string&)> on_warning = nullptr;
};

class DiskTier {
 public:
  using Bytes = std::vector<std::byte>;
  // A page that came back; empty bytes: it could not be read, and no more will come.
  struct Arrival {
    size_t index;  // of the read's keys
    Bytes bytes;
  };
  // Pages wanted back, in order. The tier stops reading when it dies.
  class Read;

  // Throws SetupError when the folder cannot be used.
  explicit DiskTier(DiskTierOptions options);
  // Writes what is waiting, for at most a few seconds.
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  size_t page_bytes() const { return options_.store.page_bytes; }

  // One answer per key: on disk, or on its way there.
  std::vector<bool> has(std::span<const PageKey> keys) const;
  // Calls `fill` with the room for one page and writes it later. False, without calling it, when
  // too much is waiting or nothing is written at present.
  bool save(const PageKey& key, const std::optional<PageKey>& parent,
            const std::function<void(std::span<std::byte>)>& fill);
  // How many more pages save() would take now.
  int room() const;

  // Called on the tier's thread when there is something to take from a read. Nobody is called any
  // more when this returns but `callback`.
  void on_arrival(std::function<void()> callback);
  std::shared_ptr<Read> read(std::vector<PageKey> keys);
  // What has come since the last call.
  std::vector<Arrival> take(Read& read);

  // Forgets every page.
  void clear();
  // Waits until all is written that was saved before; false when `timeout` comes first.
  bool flush(std::chrono::milliseconds timeout);
  DiskStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Write {
    PageKey key;
    std::optional<PageKey> parent;
    Bytes bytes;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run();
  // The thread's next piece of work, with the lock held at begin and end but not in between. False:
  // nothing to do.
  bool work(Lock& lock);
  bool retry_open(Lock& lock);
  void take_over_store();
  bool read_one(Lock& lock);
  void write_one(Lock& lock);
  void clear_all(Lock& lock);
  int slot_for_one_more(Lock& lock);
  std::shared_ptr<Read> next_read();
  bool writable() const;
  size_t most_staged() const;

  DiskTierOptions options_;
  std::unique_ptr<DiskStore> store_;  // its thread, once it runs; none: another process has it

  std::mutex arrival_mutex_;
  std::function<void()> on_arrival_;

  mutable std::mutex mutex_;  // all below
  std::condition_variable wake_;
  std::condition_variable written_;
  bool open_ = false;
  bool stopping_ = false;
  bool clearing_ = false;
  Clock::time_point next_lock_ = {};
  Clock::time_point writes_off_until_ = {};
  DiskIndex index_;
  uint64_t stamp_ = 0;
  std::list<Write> writes_;  // oldest first; its thread writes the first
  std::unordered_map<PageKey, std::list<Write>::iterator, PageKeyHash> waiting_;
  std::vector<Bytes> spare_;  // for pages to be written
  std::vector<std::weak_ptr<Read>> reads_;
  DiskStats stats_;
  std::thread thread_;
};

class DiskTier::Read {
 public:
  explicit Read(std::vector<PageKey> keys) : keys_(std::move(keys)) {}

 private:
  friend class DiskTier;
  // All under the tier's lock.
  std::vector<PageKey> keys_;
  size_t next_ = 0;
  std::vector<Arrival> arrived_;
};

}  // namespace octavo
