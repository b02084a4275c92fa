// state_lease.h - the pages of one sequence's state, which the next rows read and write. No
// tensors. Engine thread only.
//
// A state is written in place until it is kept as a snapshot; from then on its pages do not change
// and the next rows write to fresh ones. A snapshot therefore needs no copy. Draft tokens can be
// taken back: the state after each of them has pages of its own until the drafts are verified.
#pragma once

#include <span>
#include <vector>

#include "cache/page_pool.h"

namespace octavo {

class StateLease {
 public:
  // `pages`: per copy of the state; 0 if there is no state.
  StateLease(PagePool& pool, int pages) : pool_(&pool), pages_(pages) {}

  // Starts with a shared snapshot. Only while it holds no pages.
  void adopt(std::span<const PageId> snapshot);
  // Pages that the next rows still need, the last `drafts` of which are drafts.
  int missing(int drafts = 0) const;
  // Leases them; the pool must have enough.
  void grow(int drafts = 0);

  // Source pages, then target pages, of the next rows; with drafts, the target pages of the first
  // row and of each draft. The sources are kNoPage before the first row.
  std::vector<PageId> table() const;
  // Rows from `start` on have been added: the targets become the current state, with drafts those
  // of the first row.
  void advance(int start);
  // The next draft was right: the state after it becomes the current one. `position`: of the draft.
  void accept_draft(int position);
  // The remaining drafts were wrong.
  void drop_drafts() { drafts_.clear(); }
  // Keeps the state after the rows added so far: its pages are not written again. Returns them.
  std::span<const PageId> keep();
  // The same pages, or none before the first row.
  std::span<const PageId> current() const { return state_.pages(); }
  // Pages written by rows from `start` on, one span for each copy.
  std::vector<std::span<const PageId>> written_from(int start) const;
  // Releases the copies that no row from `position` on reads.
  void release_behind(int position);
  void release();

 private:
  // A copy that rows in flight may still read.
  struct Read {
    int start;  // of those rows
    PageLease pages;
  };

  bool must_move() const { return pages_ > 0 && (kept_ || state_.pages().empty()); }

  PagePool* pool_;
  int pages_;
  PageLease state_;
  bool kept_ = false;
  PageLease target_;
  std::vector<PageLease> drafts_;  // the state after each draft of the next step, or of its newest
  std::vector<Read> reads_;        // oldest first
};

}  // namespace octavo
