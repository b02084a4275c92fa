// paged_fixture.h - for tests: pages, tables and histories of a mixed batch.
#pragma once

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/paged_attention.h"
#include "kernels/qkv_write.h"
#include "kernels/testing/kv_write.h"
#include "kernels/testing/support.h"

namespace octavo {

struct PagedSequence {
  int cached;  // tokens already in the pages
  int rows;    // new rows in this batch
};

struct PagedCase {
  std::vector<PagedSequence> sequences;
  PageGeometry geometry;
  int q_heads;
  AttentionOptions options;
};

inline mx::array int_array(const std::vector<int>& values) {
  return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
}

// Free pages and the unused part of partial ones contain NaN. Random numbers depend on the seed
// only.
class PagedFixture {
 public:
  PagedFixture(const PagedCase& c, KernelPath path, uint32_t seed) : case_(c), random_(seed) {
    const PageGeometry& g = c.geometry;
    for (const auto& s : c.sequences) columns_ = std::max(columns_, blocks_of(s));
    const int pages = columns_ * static_cast<int>(c.sequences.size()) + 3;
    // A page may be longer than this layer needs.
    mx::array bytes = make_device_buffer({pages, static_cast<int>(g.page_bytes()) + 64}, mx::uint8);
    std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
    pages_.push_back({bytes, g, path});
    std::vector<int> ids(static_cast<size_t>(pages));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), random_);
    for (const auto& s : c.sequences) {
      for (int column = 0; column < columns_; ++column) {
        table_.push_back(column < blocks_of(s) ? ids.back() : -1);
        ids.pop_back();
      }
    }
    write_history();
  }

  // The step itself: writes this batch's rows and attends.
  mx::array run() {
    const PageGeometry& g = case_.geometry;
    const int rows = new_rows();
    const mx::Dtype dtype = mlx_dtype(g.dtype);
    const mx::array k = random_array(random_, {rows, g.kv_heads, g.k_dim}, dtype);
    const mx::array v = random_array(random_, {rows, g.kv_heads, g.v_dim}, dtype);
    const mx::array q = random_array(random_, {rows, case_.q_heads, g.k_dim}, dtype);
    pages_[0] = kv_write(pages_[0], k, v, layout(), tables());
    mx::array out = paged_attention(q, pages_[0], layout(), tables(), case_.options);
    out.eval();
    return out;
  }

  // The same from the projection's output, normed and rotated: returns q and its attention.
  std::vector<mx::array> run_fused(const QkvOptions& options, const mx::array& qkv) {
    const QkvWritten written = qkv_write(pages_[0], qkv, layout(), tables(), options);
    pages_[0] = written.pages;
    const mx::array out = paged_attention(written.q, pages_[0], layout(), tables(), case_.options);
    mx::eval(written.q, out);
    return {written.q, out};
  }

  int new_rows() const {
    int rows = 0;
    for (const auto& s : case_.sequences) rows += s.rows;
    return rows;
  }
  BatchLayout layout() const {
    return layout_of([](const PagedSequence& s) { return s.cached; },
                     [](const PagedSequence& s) { return s.rows; });
  }
  mx::array tables() const {
    return mx::array(table_.begin(), {static_cast<int>(case_.sequences.size()), columns_},
                     mx::int32);
  }
  const KvPages& pages() const { return pages_[0]; }
  void rebind(const KvPages& pages) { pages_[0] = pages; }

 private:
  int blocks_of(const PagedSequence& s) const {
    return (s.cached + s.rows + case_.geometry.block_tokens - 1) / case_.geometry.block_tokens;
  }

  template <typename Start, typename Rows>
  BatchLayout layout_of(Start start, Rows rows_of) const {
    std::vector<int> positions, cu = {0}, context;
    for (const auto& s : case_.sequences) {
      for (int i = 0; i < rows_of(s); ++i) positions.push_back(start(s) + i);
      cu.push_back(cu.back() + rows_of(s));
      context.push_back(start(s) + rows_of(s));
    }
    return {int_array(positions), int_array(cu), int_array(context)};
  }

  void write_history() {
    int rows = 0;
    for (const auto& s : case_.sequences) rows += s.cached;
    if (rows == 0) return;
    const PageGeometry& g = case_.geometry;
    const mx::Dtype dtype = mlx_dtype(g.dtype);
    const mx::array k = random_array(random_, {rows, g.kv_heads, g.k_dim}, dtype);
    const mx::array v = random_array(random_, {rows, g.kv_heads, g.v_dim}, dtype);
    const BatchLayout history = layout_of([](const PagedSequence&) { return 0; },
                                          [](const PagedSequence& s) { return s.cached; });
    pages_[0] = kv_write(pages_[0], k, v, history, tables());
    mx::eval(pages_[0].bytes);
  }

  PagedCase case_;
  std::mt19937 random_;
  int columns_ = 0;
  std::vector<int> table_;
  std::vector<KvPages> pages_;  // one element; KvPages has no default
};

}  // namespace octavo
