// page_prefetch.h - prefetches the pages that a thread reads next while it computes on the current
// ones. A head's rows are too short for hardware prefetchers. No MLX.
#pragma once

#include "kernels/cpu/simd/attention_fold.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

// Walks over the pages of one split.
struct PagePrefetch {
  const AttentionPiece* item = nullptr;
  int64_t position = 0;
  int64_t end = 0;
  const std::byte* at = nullptr;
  int64_t left = 0;   // lines left of the current page
  int64_t share = 0;  // lines to prefetch at a time
};

inline constexpr int64_t kLineBytes = 64;

// For the split after `split`, or the next piece's first, in `calls` equal parts.
OCTAVO_INLINE PagePrefetch prefetch_after(const AttentionPiece& item, int64_t split,
                                          int64_t calls) {
  PagePrefetch p;
  p.item = split + 1 < item.split_end ? &item : item.next;
  if (p.item == nullptr) return p;
  const AttentionShape s = attention_shape(*p.item);
  const KeyRange keys =
      keys_of(*p.item, s, p.item == &item ? split + 1 : p.item->split_begin, 0, s.columns);
  const PageLayout& l = p.item->job->layout;
  p.position = keys.from;
  p.end = keys.to;
  const int64_t bytes = (keys.to - keys.from) * (l.head_bytes / l.block_tokens);
  p.share = bytes / kLineBytes / calls + 1;
  return p;
}

OCTAVO_INLINE void prefetch_share(PagePrefetch& p) {
  int64_t count = p.share;
  while (count > 0) {
    if (p.left == 0) {
      if (p.position >= p.end) return;
      const PageLayout& l = p.item->job->layout;
      p.at = slot_of(*p.item, p.position).head;
      p.left = (l.head_bytes + kLineBytes - 1) / kLineBytes;
      p.position = (p.position / l.block_tokens + 1) * l.block_tokens;
    }
    const int64_t run = p.left < count ? p.left : count;
    const std::byte* at = p.at;
    _Pragma("GCC unroll 8") for (int64_t i = 0; i < run; ++i) {
      __builtin_prefetch(at + i * kLineBytes, 0, 2);
    }
    p.at += run * kLineBytes;
    p.left -= run;
    count -= run;
  }
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
