// disk_tier.h - the second level of the prefix cache: writes pages to disk and reads them back on
// its own thread. No MLX. Any thread.
//
// Pages that cannot be written are dropped; pages that cannot be read back bit for bit count as
// missing. Callers never wait for the disk.
#pragma once

#include <atomic>
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
#include <unordered_set>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/disk_stats.h"
#include "cache/disk_store.h"
#include "cache/prefix_observer.h"

namespace octavo {

// Size of each of the two staging areas, for writes and for reads: at least one whole snapshot.
uint64_t disk_staging_bytes(const CachePlan& plan);

struct DiskTierOptions {
  DiskStoreOptions store;
  uint64_t staging_bytes = 64u << 20;             // for writes, and the same again for reads
  std::chrono::milliseconds lock_retry{5'000};    // while another process has locked the folder
  std::chrono::milliseconds write_retry{60'000};  // after a write error
  // Called on the tier's thread with a message for the log.
  std::function<void(const std::string&)> on_warning = nullptr;
  PrefixObserver* observer = nullptr;  // must outlive the tier
};

class DiskTier {
 public:
  using Bytes = std::vector<std::byte>;
  // A page that was read. Empty bytes: it could not be read, and no more will follow.
  struct Arrival {
    size_t index;  // of the read's keys
    Bytes bytes;
  };
  // A request to read pages in order; destroying it cancels the read.
  class Read;

  // Throws SetupError if the folder cannot be used.
  explicit DiskTier(DiskTierOptions options);
  // Writes waiting pages, for at most a few seconds.
  ~DiskTier();
  DiskTier(const DiskTier&) = delete;
  DiskTier& operator=(const DiskTier&) = delete;

  size_t page_bytes() const { return options_.store.page_bytes; }
  // Digest of everything besides the key that determines a page's bytes, in hex.
  std::string fingerprint() const;

  // For each key: true if the page is on disk or waiting to be written.
  std::vector<bool> has(std::span<const PageKey> keys) const;
  // Writes a page's bytes to the buffer.
  using Fill = std::function<void(std::span<std::byte>)>;
  // Calls `fill` with a buffer for one page and writes it later. Returns false, without calling it,
  // if too many pages are waiting or writing is paused. `common`: of the common namespace.
  bool save(const PageKey& key, const std::optional<PageKey>& parent, const Fill& fill,
            bool common = false);
  // Reports a saved page to the observer: now if it is on disk, or when it has been written.
  void announce(const PageKey& key, const CachedBlock& block);
  // How many more pages save() would accept now.
  int room() const;

  // --- pages of other processes ---
  // True if all are on disk, of the common namespace, and computed here or proven.
  bool are_common(std::span<const PageKey> keys) const;
  // The most recently used pages of the common namespace.
  std::vector<DiskRecord> common_pages(size_t most) const;
  // How many more pages fit without evicting one.
  size_t free_slots() const;
  // Saves a page that another process computed; it is unproven until this process has computed the
  // same bytes. False as for save(), or if a received page was wrong.
  bool receive(const PageKey& key, const std::optional<PageKey>& parent, const Fill& fill);
  // False if certainly no page is unproven.
  bool may_have_unproven() const { return holds_received_; }
  // Of the calls with an unproven page, the first and then one in 16: the pages are to be computed,
  // and given to prove().
  bool wants_proof(std::span<const PageKey> keys);
  // `fill` has the bytes of a page as computed here. If the page is unproven and differs, every page
  // is forgotten and no more are received.
  void prove(const PageKey& key, const Fill& fill);
  // Once after a page differed: what was computed from received pages is to be forgotten. No page is
  // unproven after that.
  bool take_refuted();

  // Sets the function that is called on the tier's thread when a read has pages to take. The
  // previous one is not called any more after this returns.
  void on_arrival(std::function<void()> callback);
  std::shared_ptr<Read> read(std::vector<PageKey> keys);
  // Returns the pages that arrived since the last call.
  std::vector<Arrival> take(Read& read);

  // Forgets every page.
  void clear();
  // Waits until all pages saved so far are written. False on timeout.
  bool flush(std::chrono::milliseconds timeout);
  DiskStats stats() const;

 private:
  using Clock = std::chrono::steady_clock;
  enum class Purpose : uint8_t { kSave, kReceive, kProve };
  struct Write {
    PageKey key;
    std::optional<PageKey> parent;
    Bytes bytes;
    Purpose purpose = Purpose::kSave;
    bool common = false;
  };
  using Lock = std::unique_lock<std::mutex>;

  void run();
  // Runs the next piece of work. The lock is held on entry and exit but not in between. False if
  // there is nothing to do.
  bool work(Lock& lock);
  bool retry_open(Lock& lock);
  void take_over_store();
  bool read_one(Lock& lock);
  // Adds to the pages that wait for the thread.
  bool enqueue(Write write, const Fill& fill);
  void write_one(Lock& lock);
  // Forgets the first waiting page.
  void end_write();
  // Compares the first waiting page with the one on disk.
  void prove_one(Lock& lock);
  void refute();
  bool unproven(const PageKey& key) const;
  bool may_share(int slot) const;
  void clear_all(Lock& lock);
  int slot_for_one_more(Lock& lock);
  std::shared_ptr<Read> next_read();
  bool writable() const;
  size_t most_staged() const;
  // Under the lock, as all reports are, so that they are in order.
  void report_stored(const PageKey& key, const CachedBlock& block);
  void report_removed(const PageKey& key);

  DiskTierOptions options_;
  std::unique_ptr<DiskStore>
      store_;  // used only by the thread; null: another process has the folder

  std::mutex arrival_mutex_;
  std::function<void()> on_arrival_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable wake_;
  std::condition_variable written_;
  bool open_ = false;
  bool stopping_ = false;
  bool clearing_ = false;
  Clock::time_point next_lock_ = {};
  Clock::time_point writes_off_until_ = {};
  DiskIndex index_;
  uint64_t stamp_ = 0;
  std::list<Write> writes_;  // oldest first; the thread writes the first
  std::unordered_map<PageKey, std::list<Write>::iterator, PageKeyHash> waiting_;
  std::vector<Bytes> spare_;  // for pages to be written
  std::vector<std::weak_ptr<Read>> reads_;
  DiskStats stats_;
  int most_slots_ = 0;
  uint64_t unproven_hits_ = 0;
  bool refuses_received_ = false;  // one was wrong
  std::atomic<bool> holds_received_ = false;
  std::atomic<bool> refuted_ = false;
  std::unordered_map<PageKey, CachedBlock, PageKeyHash> unreported_;  // waiting to be written
  std::unordered_set<PageKey, PageKeyHash> reported_;
  std::thread thread_;
};

class DiskTier::Read {
 public:
  explicit Read(std::vector<PageKey> keys) : keys_(std::move(keys)) {}

 private:
  friend class DiskTier;
  // Guarded by the tier's lock.
  std::vector<PageKey> keys_;
  size_t next_ = 0;
  std::vector<Arrival> arrived_;
};

}  // namespace octavo
