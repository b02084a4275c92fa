// kv_store.h - the memory of the pages: one buffer per slot. Engine thread only.
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

  // The pages of a layer, as kernels take them.
  KvPages layer(int layer) const;
  StatePages state(int layer) const;
  // Binds the layer to the buffer that a write returned, so that later reads depend on the write.
  void rebind(int layer, const mx::array& written);

  // Drops queued writes: binds every layer to its memory in its current state.
  void rebind_to_memory() { buffers_ = memory_; }
  // Makes every page resident, so that the planned memory is available later.
  void touch();

  size_t bytes_per_page() const override { return plan_.bytes_per_page_id(); }
  void copy_out(PageId page, std::span<std::byte> to) const override;
  void copy_in(PageId page, std::span<const std::byte> from) override;

  // All buffers; evaluating them completes every queued write.
  const std::vector<mx::array>& buffers() const { return buffers_; }

 private:
  CachePlan plan_;
  int page_count_;
  KernelPath path_;
  std::vector<mx::array> memory_;   // by slot: [pages, page_bytes] uint8
  std::vector<std::byte*> bytes_;   // by slot: start of that memory
  std::vector<mx::array> buffers_;  // the same memory after the queued writes
};

}  // namespace octavo
