// kv_store.h - the memory of the pages: one buffer per slot of this machine's stage. Engine thread only.
#pragma once

#include <vector>

#include "cache/cache_plan.h"
#include "cache/page_memory.h"
#include "kernels/paged_attention.h"
#include "kernels/state_pages.h"

namespace octavo {

class KvStore : public PageMemory {
 public:
  // `stage`: of the plan; its slots are allocated, and only its layers may be used.
  KvStore(CachePlan plan, int page_count, KernelPath path, size_t stage = 0);

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

  // Of the stage.
  size_t bytes_per_page() const override { return bytes_.size() * plan_.page_bytes; }
  void copy_out(PageId page, std::span<std::byte> to) const override;
  void copy_in(PageId page, std::span<const std::byte> from) override;

  // All buffers; evaluating them completes every queued write.
  const std::vector<mx::array>& buffers() const { return buffers_; }

 private:
  // The index of the layer's buffer.
  size_t buffer_of(int layer) const;

  CachePlan plan_;
  SlotRange slots_;
  int page_count_;
  KernelPath path_;
  std::vector<mx::array> memory_;   // by slot of the stage: [pages, page_bytes] uint8
  std::vector<std::byte*> bytes_;   // by slot: start of that memory
  std::vector<mx::array> buffers_;  // the same memory after the queued writes
};

}  // namespace octavo
