#include "cache/page_pool.h"

#include <utility>

#include "base/error.h"

namespace octavo {

PageLease::PageLease(PageLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)), pages_(std::exchange(other.pages_, {})) {}

PageLease& PageLease::operator=(PageLease&& other) noexcept {
  if (this != &other) {
    truncate(0);
    pool_ = std::exchange(other.pool_, nullptr);
    pages_ = std::exchange(other.pages_, {});
  }
  return *this;
}

PageLease::~PageLease() { truncate(0); }

void PageLease::append(PageLease&& other) {
  OCTAVO_CHECK(pool_ == nullptr || other.pool_ == nullptr || pool_ == other.pool_);
  if (pool_ == nullptr) pool_ = other.pool_;
  pages_.insert(pages_.end(), other.pages_.begin(), other.pages_.end());
  other.pages_.clear();
}

void PageLease::truncate(size_t count) {
  while (pages_.size() > count) {
    pool_->drop_reference(pages_.back());
    pages_.pop_back();
  }
}

PageLease PageLease::share(size_t count) const {
  OCTAVO_CHECK(count <= pages_.size());
  if (count == 0) return {};
  std::vector<PageId> shared(pages_.begin(), pages_.begin() + static_cast<std::ptrdiff_t>(count));
  for (PageId page : shared) pool_->add_reference(page);
  return {*pool_, std::move(shared)};
}

PagePool::PagePool(int page_count) {
  OCTAVO_CHECK(page_count >= 0);
  references_.resize(static_cast<size_t>(page_count), 0);
  free_.reserve(references_.size());
  // Handed out from the back, so the lowest ids go first.
  for (PageId page = page_count - 1; page >= 0; --page) free_.push_back(page);
}

PagePool::~PagePool() { OCTAVO_CHECK(free_.size() == references_.size()); }

std::optional<PageLease> PagePool::try_lease(int count) {
  OCTAVO_CHECK(count >= 0);
  if (count > free_pages()) return std::nullopt;
  std::vector<PageId> pages;
  pages.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    // Newest first: a page just given back is the likeliest to be warm.
    pages.push_back(free_.back());
    free_.pop_back();
    references_[static_cast<size_t>(pages.back())] = 1;
  }
  return PageLease(*this, std::move(pages));
}

void PagePool::add_reference(PageId page) {
  int32_t& count = references_[static_cast<size_t>(page)];
  OCTAVO_CHECK(count > 0);
  ++count;
}

void PagePool::drop_reference(PageId page) {
  int32_t& count = references_[static_cast<size_t>(page)];
  OCTAVO_CHECK(count > 0);
  if (--count == 0) free_.push_back(page);
}

}  // namespace octavo
