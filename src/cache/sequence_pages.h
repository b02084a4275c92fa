// sequence_pages.h - the pages of one sequence, a table per cache group. No tensors. Engine thread
// only.
#pragma once

#include <span>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/page_pool.h"
#include "cache/state_lease.h"

namespace octavo {

class SequencePages {
 public:
  // `plan` and `pool` must outlive the sequence.
  SequencePages(const CachePlan& plan, PagePool& pool);

  // Begins with these pages of others, by group, and this copy of their state. Only while it holds
  // nothing.
  void adopt(std::span<const std::vector<PageId>> pages, std::span<const PageId> state);
  // Makes room for `tokens` tokens in every group, and for the state behind them. False, with
  // nothing taken, when the pool has too few pages.
  bool grow_to(int tokens);
  // Gives back the pages that `tokens` tokens do not need.
  void shrink_to(int tokens);
  // Gives back the pages whose tokens or states no row from `position` on looks at.
  void release_behind(int position);
  // Gives back every page.
  void release();

  // Column c: the page of tokens [c * block_tokens, (c + 1) * block_tokens) of the group, kNoPage
  // when the window has passed it.
  std::span<const PageId> table(int group) const {
    return leases_[static_cast<size_t>(group)].pages();
  }
  StateLease& state() { return state_; }
  const StateLease& state() const { return state_; }

 private:
  const CachePlan* plan_;
  PagePool* pool_;
  std::vector<PageLease> leases_;  // by group
  StateLease state_;
};

}  // namespace octavo
