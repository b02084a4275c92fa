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

  // Starts with shared pages, by group, and a shared copy of the state. Only while it holds no
  // pages.
  void adopt(std::span<const std::vector<PageId>> pages, std::span<const PageId> state);
  // Gets pages for `tokens` tokens in every group and for the state after them; the last `drafts`
  // of them are drafts, each with a state of its own. Returns false, without a change, if the pool
  // has too few.
  bool grow_to(int tokens, int drafts = 0);
  // Releases the pages that `tokens` tokens do not need.
  void shrink_to(int tokens);
  // Releases the pages whose tokens or states no row from `position` on reads.
  void release_behind(int position);
  // Releases every page.
  void release();

  int groups() const { return static_cast<int>(leases_.size()); }
  // Column c: the page of tokens [c * block_tokens, (c + 1) * block_tokens) of the group, kNoPage
  // before the window.
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
