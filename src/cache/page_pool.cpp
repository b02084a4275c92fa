#include "cache/page_pool.h"

#include <utility>

#include "base/error.h"

namespace octavo {

PageLease::PageLease(PageLease&& other) noexcept
    : pool_(std::exchange(other.pool_, nullptr)),
      pages_(std::exchange(other.pages_, {})),
      released_front_(std::exchange(other.released_front_, 0)) {}

PageLease& PageLease::operator=(PageLease&& other) noexcept {
  if (this != &other) {
    truncate(0);
    pool_ = std::exchange(other.pool_, nullptr);
    pages_ = std::exchange(other.pages_, {});
    released_front_ = std::exchange(other.released_front_, 0);
  }
  return *this;
}

PageLease::~PageLease() { truncate(0); }

void PageLease::append(PageLease&& other) {
  OCTAVO_CHECK(pool_ == nullptr || other.pool_ == nullptr || pool_ == other.pool_);
  if (pool_ == nullptr) pool_ = other.pool_;
  if (pages_.empty()) released_front_ = other.released_front_;
  pages_.insert(pages_.end(), other.pages_.begin(), other.pages_.end());
  other.pages_.clear();
}

void PageLease::truncate(size_t count) {
  while (pages_.size() > count) {
    if (pages_.back() != kNoPage) pool_->drop_reference(pages_.back());
    pages_.pop_back();
  }
}

void PageLease::release_front(size_t count) {
  OCTAVO_CHECK(count <= pages_.size());
  for (; released_front_ < count; ++released_front_) {
    PageId& page = pages_[released_front_];
    if (page != kNoPage) pool_->drop_reference(std::exchange(page, kNoPage));
  }
}

PagePool::PagePool(int page_count) {
  OCTAVO_CHECK(page_count >= 0);
  pages_.resize(static_cast<size_t>(page_count));
  free_.reserve(pages_.size());
  // Leased from the back, so that the lowest ids come first.
  for (PageId page = page_count - 1; page >= 0; --page) free_.push_back(page);
}

PagePool::~PagePool() { OCTAVO_CHECK(referenced_pages() == 0); }

std::optional<PageLease> PagePool::try_lease(int count) {
  OCTAVO_CHECK(count >= 0);
  if (count > available_pages()) return std::nullopt;
  std::vector<PageId> lent;
  lent.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    PageId page = kNoPage;
    if (free_.empty()) {
      page = evict_oldest();
    } else {
      // Newest first: a page just released is most likely in the CPU cache.
      page = free_.back();
      free_.pop_back();
    }
    at(page).references = 1;
    lent.push_back(page);
  }
  return PageLease(*this, std::move(lent));
}

PageLease PagePool::share(std::span<const PageId> pages) {
  for (PageId page : pages) {
    if (page != kNoPage) add_reference(page);
  }
  return {*this, {pages.begin(), pages.end()}};
}

void PagePool::keep(PageId page) {
  OCTAVO_CHECK(at(page).references > 0);
  at(page).kept = true;
}

void PagePool::forget(PageId page) {
  if (state(page) == PageState::kCached) {
    unlink(page);
    free_.push_back(page);
  }
  at(page).kept = false;
}

PageState PagePool::state(PageId page) const {
  if (at(page).references > 0) return PageState::kReferenced;
  return at(page).kept ? PageState::kCached : PageState::kFree;
}

const PagePool::Page& PagePool::at(PageId page) const {
  OCTAVO_CHECK(page >= 0 && page < page_count());
  return pages_[static_cast<size_t>(page)];
}

PagePool::Page& PagePool::at(PageId page) {
  return const_cast<Page&>(std::as_const(*this).at(page));
}

void PagePool::add_reference(PageId page) {
  Page& entry = at(page);
  if (entry.references == 0) {
    OCTAVO_CHECK(entry.kept);  // a free page has no content to share
    unlink(page);
  }
  ++entry.references;
}

void PagePool::drop_reference(PageId page) {
  Page& entry = at(page);
  OCTAVO_CHECK(entry.references > 0);
  if (--entry.references > 0) return;
  if (entry.kept) {
    link_newest(page);
  } else {
    free_.push_back(page);
  }
}

void PagePool::link_newest(PageId page) {
  Page& entry = at(page);
  entry.previous = ends_.previous;
  entry.next = kNoPage;
  (ends_.previous == kNoPage ? ends_ : at(ends_.previous)).next = page;
  ends_.previous = page;
  ++cached_count_;
}

void PagePool::unlink(PageId page) {
  const Page& entry = at(page);
  (entry.previous == kNoPage ? ends_ : at(entry.previous)).next = entry.next;
  (entry.next == kNoPage ? ends_ : at(entry.next)).previous = entry.previous;
  --cached_count_;
}

PageId PagePool::evict_oldest() {
  const PageId page = ends_.next;
  OCTAVO_CHECK(page != kNoPage);
  if (on_evict_) on_evict_(page);
  unlink(page);
  at(page).kept = false;
  return page;
}

}  // namespace octavo
