// page_memory.h - access to the bytes of a page. No MLX. Engine thread only.
#pragma once

#include <cstddef>
#include <span>

#include "cache/page_pool.h"

namespace octavo {

class PageMemory {
 public:
  virtual ~PageMemory() = default;

  // Bytes of one page id over all buffers.
  virtual size_t bytes_per_page() const = 0;
  // No step in flight may write the page.
  virtual void copy_out(PageId page, std::span<std::byte> to) const = 0;
  // No step in flight may read or write the page.
  virtual void copy_in(PageId page, std::span<const std::byte> from) = 0;
};

}  // namespace octavo
