// state_lease.h - the pages of one sequence's state: what the next rows read, and where they write.
// No tensors. Engine thread only.
//
// A state is written in place, until it is kept: from then on its pages stay as they are, and the
// next rows write to fresh ones. So a snapshot costs no copy.
#pragma once

#include <span>
#include <vector>

#include "cache/page_pool.h"

namespace octavo {

class StateLease {
 public:
  // `pages`: that one copy of the state takes; 0: there is no state.
  StateLease(PagePool& pool, int pages) : pool_(&pool), pages_(pages) {}

  // Begins with a copy that others have kept. Only while it holds nothing.
  void adopt(std::span<const PageId> snapshot);
  // Pages that the next rows still need.
  int missing() const { return must_move() && target_.pages().empty() ? pages_ : 0; }
  // Takes them; the pool has enough.
  void grow();

  // Source pages, then target pages, of the next rows. Sources are kNoPage before the first row.
  std::vector<PageId> table() const;
  // Rows from `start` on have been added: the targets hold the state now, once their step has run.
  void advance(int start);
  // The pages of the state behind the rows added so far are not written again. Returns them.
  std::span<const PageId> keep();
  // The same pages, or none before the first row.
  std::span<const PageId> current() const { return state_.pages(); }
  // Pages written by rows from `start` on, one span for each copy.
  std::vector<std::span<const PageId>> written_from(int start) const;
  // Gives back the copies that no row from `position` on reads.
  void release_behind(int position);
  void release();

 private:
  // What rows that may still run read.
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
  std::vector<Read> reads_;  // oldest first
};

}  // namespace octavo
