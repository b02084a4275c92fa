// page_memory.h - the bytes behind a page id. No MLX. Engine thread only.
#pragma once

#include <cstddef>
#include <span>

#include "cache/page_pool.h"

namespace octavo {

class PageMemory {
 public:
  virtual ~PageMemory() = default;

  // Of one page id over all buffers.
  virtual size_t bytes_per_page() const = 0;
  // No step in flight writes the page.
  virtual void copy_out(PageId page, std::span<std::byte> to) const = 0;
  // No step in flight reads or writes the page.
  virtual void copy_in(PageId page, std::span<const std::byte> from) = 0;
};

}  // namespace octavo
