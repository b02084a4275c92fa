#include <cstring>

#include "base/compute_pool.h"
#include "kernels/cpu/page_reader.h"
#include "kernels/cpu/paged_attention.h"

namespace octavo::cpu {
namespace {

void write_sequence(const PagedBatch& batch, int64_t sequence, const std::byte* k,
                    const std::byte* v) {
  const PageGeometry& g = batch.geometry;
  // All heads of a token stand together in a page, as they do in the rows.
  const auto k_row = static_cast<size_t>(g.kv_heads * g.k_dim) * size_of(g.dtype);
  const auto v_row = static_cast<size_t>(g.kv_heads * g.v_dim) * size_of(g.dtype);
  const int64_t first = batch.cu_seqlens_q[sequence];
  const int64_t count = batch.cu_seqlens_q[sequence + 1] - first;
  const int64_t start = batch.context_lens[sequence] - count;
  OCTAVO_CHECK(start >= 0);
  for (int64_t i = 0; i < count; ++i) {
    const auto row = static_cast<size_t>(first + i);
    std::memcpy(k_at(batch, sequence, start + i, 0), k + row * k_row, k_row);
    std::memcpy(v_at(batch, sequence, start + i, 0), v + row * v_row, v_row);
  }
}

}  // namespace

void kv_write(const PagedBatch& batch, const void* k, const void* v) {
  compute_pool().parallel_for(batch.sequences, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      write_sequence(batch, s, static_cast<const std::byte*>(k), static_cast<const std::byte*>(v));
    }
  });
}

}  // namespace octavo::cpu
