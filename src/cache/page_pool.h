// page_pool.h - lends KV pages by id. Holds counts, no tensors. Engine thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace octavo {

using PageId = int32_t;
inline constexpr PageId kNoPage = -1;

class PagePool;

// References to pages, one per entry. Returned to the pool on destruction.
class PageLease {
 public:
  PageLease() = default;
  PageLease(PageLease&& other) noexcept;
  PageLease& operator=(PageLease&& other) noexcept;
  ~PageLease();

  std::span<const PageId> pages() const { return pages_; }

  // Takes over another lease of the same pool; its pages follow ours.
  void append(PageLease&& other);
  // Releases all but the first `count` pages, the last first.
  void truncate(size_t count);
  // Releases the first `count` pages and replaces them by kNoPage.
  void release_front(size_t count);

 private:
  friend class PagePool;
  PageLease(PagePool& pool, std::vector<PageId> pages) : pool_(&pool), pages_(std::move(pages)) {}

  PagePool* pool_ = nullptr;
  std::vector<PageId> pages_;
  size_t released_front_ = 0;
};

enum class PageState : uint8_t {
  kFree,        // has no content
  kCached,      // unreferenced, but its content may be reused
  kReferenced,  // in at least one lease
};

// Every page has exactly one PageState.
class PagePool {
 public:
  explicit PagePool(int page_count);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  // All leases must have been destroyed.
  ~PagePool();

  // Leases `count` unreferenced pages. Returns nullopt if there are too few. Free pages are used
  // first, then those cached longest.
  std::optional<PageLease> try_lease(int count);
  // Adds a reference to each page, which must be referenced or cached; kNoPage stays kNoPage. Only
  // full pages may be shared: a page in two leases is never written.
  PageLease share(std::span<const PageId> pages);

  // The page, which must be referenced, becomes cached instead of free when its last reference is
  // released.
  void keep(PageId page);
  // Undoes keep(); a cached page becomes free.
  void forget(PageId page);
  // Called with a cached page that is about to be reused.
  void on_evict(std::function<void(PageId)> callback) { on_evict_ = std::move(callback); }

  int page_count() const { return static_cast<int>(pages_.size()); }
  int free_pages() const { return static_cast<int>(free_.size()); }
  int cached_pages() const { return cached_count_; }
  int available_pages() const { return free_pages() + cached_pages(); }
  int referenced_pages() const { return page_count() - available_pages(); }

  PageState state(PageId page) const;
  int references(PageId page) const { return at(page).references; }
  bool is_kept(PageId page) const { return at(page).kept; }

 private:
  friend class PageLease;
  // Cached pages form a list, oldest first.
  struct Page {
    int32_t references = 0;
    bool kept = false;
    PageId previous = kNoPage;
    PageId next = kNoPage;
  };

  const Page& at(PageId page) const;
  Page& at(PageId page);
  void add_reference(PageId page);
  void drop_reference(PageId page);
  void link_newest(PageId page);
  void unlink(PageId page);
  PageId evict_oldest();

  std::vector<Page> pages_;
  Page ends_;  // its `next` is the oldest cached page, its `previous` the newest
  std::vector<PageId> free_;
  int cached_count_ = 0;
  std::function<void(PageId)> on_evict_;
};

}  // namespace octavo
