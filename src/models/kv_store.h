// kv_store.h - the memory behind the page ids: one buffer per layer slot. Engine thread only.
#pragma once

#include <vector>

#include "cache/cache_plan.h"
#include "cache/page_memory.h"
#include "kernels/paged_attention.h"
#include "kernels/state_pages.h"

namespace octavo {

class KvStore : public PageMemory {
 public:
  KvStore(CachePlan plan, int page_count, KernelPath path);

  const CachePlan& plan() const { return plan_; }
  int page_count() const { return page_count_; }

  // The pages of a layer as its kernels take them.
  KvPages layer(int layer) const;
  StatePages state(int layer) const;
  // Binds the layer to the buffer that a write returned, so that later reads wait for the write.
  void rebind(int layer, const mx::array& written);

  // Forgets what is queued: every layer is bound to its memory as it is.
  void rebind_to_memory() { buffers_ = memory_; }
  // Makes every page resident, so that memory the plan promised is there.
  void touch();

  size_t bytes_per_page() const override { return plan_.bytes_per_page_id(); }
  void copy_out(PageId page, std::span<std::byte> to) const override;
  void copy_in(PageId page, std::span<const std::byte> from) override;

  // All buffers: evaluating them finishes every write queued so far.
  const std::vector<mx::array>& buffers() const { return buffers_; }

 private:
  CachePlan plan_;
  int page_count_;
  KernelPath path_;
  std::vector<mx::array> memory_;   // by slot: [pages, page_bytes] uint8
  std::vector<std::byte*> bytes_;   // by slot: where that memory begins
  std::vector<mx::array> buffers_;  // the same memory behind the writes queued so far
};

}  // namespace octavo
