#include "cache/state_lease.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace octavo {

void StateLease::adopt(std::span<const PageId> snapshot) {
  OCTAVO_CHECK(state_.pages().empty() && static_cast<int>(snapshot.size()) == pages_);
  state_ = pool_->share(snapshot);
  kept_ = true;
}

int StateLease::missing(int drafts) const {
  const int own = must_move() && target_.pages().empty() ? pages_ : 0;
  return own + drafts * pages_;
}

void StateLease::grow(int drafts) {
  OCTAVO_CHECK(drafts_.empty());
  if (missing() > 0) target_ = pool_->try_lease(missing()).value();
  if (pages_ == 0) return;
  for (int i = 0; i < drafts; ++i) drafts_.push_back(pool_->try_lease(pages_).value());
}

std::vector<PageId> StateLease::table() const {
  std::vector<PageId> table(static_cast<size_t>(pages_), kNoPage);
  std::ranges::copy(state_.pages(), table.begin());
  const auto& target = must_move() ? target_ : state_;
  OCTAVO_CHECK(static_cast<int>(target.pages().size()) == pages_);
  table.insert(table.end(), target.pages().begin(), target.pages().end());
  for (const PageLease& draft : drafts_)
    table.insert(table.end(), draft.pages().begin(), draft.pages().end());
  return table;
}

void StateLease::advance(int start) {
  if (!must_move()) return;
  if (!state_.pages().empty()) reads_.push_back({start, std::move(state_)});
  state_ = std::exchange(target_, PageLease());
  kept_ = false;
}

void StateLease::accept_draft(int position) {
  if (pages_ == 0) return;
  // A snapshot of the state before it is not published yet.
  reads_.push_back({position, std::exchange(state_, std::move(drafts_.front()))});
  drafts_.erase(drafts_.begin());
  kept_ = false;
}

std::span<const PageId> StateLease::keep() {
  kept_ = true;
  return state_.pages();
}

std::vector<std::span<const PageId>> StateLease::written_from(int start) const {
  std::vector<std::span<const PageId>> copies = {state_.pages()};
  for (const Read& read : reads_) {
    if (read.start > start) copies.push_back(read.pages.pages());
  }
  return copies;
}

void StateLease::release_behind(int position) {
  std::erase_if(reads_, [&](const Read& read) { return read.start < position; });
}

void StateLease::release() {
  state_ = PageLease();
  target_ = PageLease();
  drafts_.clear();
  reads_.clear();
  kept_ = false;
}

}  // namespace octavo
