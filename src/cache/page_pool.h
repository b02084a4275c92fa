// page_pool.h - lends KV pages by id. Holds counts, no tensors. Engine thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace octavo {

using PageId = int32_t;

class PagePool;

// References to pages, one per entry; they go home when the lease dies.
class PageLease {
 public:
  PageLease() = default;
  PageLease(PageLease&& other) noexcept;
  PageLease& operator=(PageLease&& other) noexcept;
  ~PageLease();

  std::span<const PageId> pages() const { return pages_; }

  // Takes over another lease of the same pool; its pages follow ours.
  void append(PageLease&& other);
  // Gives back all but the first `count` pages.
  void truncate(size_t count);
  // A second reference to each of the first `count` pages. Only full pages may be shared: a page
  // that two leases hold is never written.
  PageLease share(size_t count) const;

 private:
  friend class PagePool;
  PageLease(PagePool& pool, std::vector<PageId> pages) : pool_(&pool), pages_(std::move(pages)) {}

  PagePool* pool_ = nullptr;
  std::vector<PageId> pages_;
};

class PagePool {
 public:
  explicit PagePool(int page_count);
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;
  // Every lease must be gone.
  ~PagePool();

  // `count` pages nobody else holds, or nothing when fewer are free.
  std::optional<PageLease> try_lease(int count);

  int page_count() const { return static_cast<int>(references_.size()); }
  int free_pages() const { return static_cast<int>(free_.size()); }
  int references(PageId page) const { return references_.at(static_cast<size_t>(page)); }

 private:
  friend class PageLease;
  void add_reference(PageId page);
  void drop_reference(PageId page);

  std::vector<int32_t> references_;
  std::vector<PageId> free_;
};

}  // namespace octavo
