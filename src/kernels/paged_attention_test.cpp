#include "kernels/paged_attention.h"

#include <algorithm>
#include <numeric>

#include "kernels/test_support.h"

namespace octavo {
namespace {

struct Sequence {
  int cached;  // tokens already in the pages
  int rows;    // new rows in this batch
};

struct Case {
  std::vector<Sequence> sequences;
  PageGeometry geometry;
  int q_heads;
  AttentionOptions options;
};

// Pages, tables and the history of every sequence. Free pages and the rest of partial ones hold
// NaN.
class Fixture {
 public:
  Fixture(const Case& c, KernelPath path, uint32_t seed) : case_(c), random_(seed) {
    const PageGeometry& g = c.geometry;
    std::vector<int> ids;
    for (const auto& s : c.sequences) columns_ = std::max(columns_, blocks_of(s));
    const int pages = columns_ * static_cast<int>(c.sequences.size()) + 3;
    // A page may be longer than this layer needs.
    mx::array bytes = make_device_buffer({pages, static_cast<int>(g.page_bytes()) + 64}, mx::uint8);
    std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
    pages_.push_back({bytes, g, path});
    ids.resize(static_cast<size_t>(pages));
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

  // The step itself: writes this batch's rows and attends. The random rows depend on the seed
  // alone.
  mx::array run() {
    int rows = 0;
    for (const auto& s : case_.sequences) rows += s.rows;
    const PageGeometry& g = case_.geometry;
    const mx::Dtype dtype = mlx_dtype(g.dtype);
    const mx::array k = random_array(random_, {rows, g.kv_heads, g.k_dim}, dtype);
    const mx::array v = random_array(random_, {rows, g.kv_heads, g.v_dim}, dtype);
    const mx::array q = random_array(random_, {rows, case_.q_heads, g.k_dim}, dtype);
    const BatchLayout layout = layout_of([](const Sequence& s) { return s.cached; },
                                         [](const Sequence& s) { return s.rows; });
    pages_[0] = kv_write(pages_[0], k, v, layout, tables());
    mx::array out = paged_attention(q, pages_[0], layout, tables(), case_.options);
    out.eval();
    return out;
  }

  const KvPages& pages() const { return pages_[0]; }

 private:
  int blocks_of(const Sequence& s) const {
    return (s.cached + s.rows + case_.geometry.block_tokens - 1) / case_.geometry.block_tokens;
  }

  mx::array tables() const {
    return mx::array(table_.begin(), {static_cast<int>(case_.sequences.size()), columns_},
                     mx::int32);
  }

  template <typename Start, typename Rows>
  BatchLayout layout_of(Start start, Rows rows_of) const {
    std::vector<int> positions, cu = {0}, context;
    for (const auto& s : case_.sequences) {
      for (int i = 0; i < rows_of(s); ++i) positions.push_back(start(s) + i);
      cu.push_back(cu.back() + rows_of(s));
      context.push_back(start(s) + rows_of(s));
    }
    auto ints = [](const std::vector<int>& values) {
      return mx::array(values.begin(), {static_cast<int>(values.size())}, mx::int32);
    };
    return {ints(positions), ints(cu), ints(context)};
  }

  void write_history() {
    int rows = 0;
    for (const auto& s : case_.sequences) rows += s.cached;
    if (rows == 0) return;
    const PageGeometry& g = case_.geometry;
    const mx::Dtype dtype = mlx_dtype(g.dtype);
    const mx::array k = random_array(random_, {rows, g.kv_heads, g.k_dim}, dtype);
    const mx::array v = random_array(random_, {rows, g.kv_heads, g.v_dim}, dtype);
    const BatchLayout layout =
        layout_of([](const Sequence&) { return 0; }, [](const Sequence& s) { return s.cached; });
    pages_[0] = kv_write(pages_[0], k, v, layout, tables());
    mx::eval(pages_[0].bytes);
  }

  Case case_;
  std::mt19937 random_;
  int columns_ = 0;
  std::vector<int> table_;
  std::vector<KvPages> pages_;  // one element; KvPages has no default
};

Case mixed_case(int block_tokens, DType dtype = DType::kFloat32) {
  return {.sequences = {{0, 1}, {0, 7}, {63, 1}, {300, 1}, {16, 16}, {255, 2}, {0, 70}, {129, 33}},
          .geometry = {.block_tokens = block_tokens,
                       .kv_heads = 2,
                       .k_dim = 32,
                       .v_dim = 32,
                       .dtype = dtype},
          .q_heads = 6,
          .options = {.scale = 0.17f}};
}

void expect_paths_agree(const Case& c, float tolerance) {
  auto before = launch_counts();
  const mx::array expected = Fixture(c, KernelPath::kReference, 5).run();
  const mx::array actual = Fixture(c, KernelPath::kNative, 5).run();
  auto after = launch_counts();
  EXPECT_EQ(after["paged_attention.reference"], before["paged_attention.reference"] + 1);
  EXPECT_EQ(after["paged_attention.cpu"], before["paged_attention.cpu"] + 1);
  EXPECT_LT(largest_difference(expected, actual), tolerance);
}

TEST(PagedAttention, MixedPrefillAndDecodeEqualTheReferenceForEveryBlockSize) {
  for (int block_tokens : {8, 16, 24, 32, 48, 160, 544}) {
    SCOPED_TRACE(block_tokens);
    expect_paths_agree(mixed_case(block_tokens), 1e-5f);
  }
}

TEST(PagedAttention, WindowSoftCapAndHeadSizesEqualTheReference) {
  for (int window : {0, 1, 5, 128}) {
    for (float soft_cap : {0.0f, 5.0f}) {
      for (const auto& [k_dim, v_dim] :
           {std::pair(64, 64), std::pair(80, 80), std::pair(72, 40), std::pair(128, 256)}) {
        SCOPED_TRACE(testing::Message()
                     << window << " " << soft_cap << " " << k_dim << " " << v_dim);
        Case c = mixed_case(16);
        c.geometry.k_dim = k_dim;
        c.geometry.v_dim = v_dim;
        c.options.window = window;
        c.options.soft_cap = soft_cap;
        expect_paths_agree(c, 1e-5f);
      }
    }
  }
}

TEST(PagedAttention, HalfPrecisionPagesEqualTheReference) {
  expect_paths_agree(mixed_case(16, DType::kFloat16), 2e-3f);
  expect_paths_agree(mixed_case(16, DType::kBFloat16), 1.6e-2f);
}

// The claim of the whole design: neighbours, chunking and page size leave no trace in the bits.
TEST(PagedAttention, ARowHasTheSameBitsAloneAndInABatch) {
  std::mt19937 random(11);
  const PageGeometry g{.block_tokens = 16, .kv_heads = 2, .k_dim = 64, .v_dim = 64};
  const int total = 600;
  const mx::array k = random_array(random, {total, 2, 64});
  const mx::array v = random_array(random, {total, 2, 64});
  const mx::array q = random_array(random, {total, 4, 64});
  auto rows = [](const mx::array& a, int begin, int end) {
    return mx::contiguous(mx::slice(a, {begin, 0, 0}, {end, a.shape(1), a.shape(2)}));
  };
  // Runs the sequence in the given chunks beside `neighbours` one-row sequences.
  auto run = [&](int block_tokens, const std::vector<int>& chunks, int neighbours) {
    PageGeometry geometry = g;
    geometry.block_tokens = block_tokens;
    const int blocks = (total + block_tokens - 1) / block_tokens;
    const int pages = blocks + neighbours;
    mx::array bytes =
        make_device_buffer({pages, static_cast<int>(geometry.page_bytes())}, mx::uint8);
    std::memset(bytes.data<void>(), 0xff, bytes.nbytes());
    KvPages kv{bytes, geometry};
    std::vector<int> table(static_cast<size_t>((neighbours + 1) * blocks), -1);
    for (int i = 0; i < neighbours; ++i) table[static_cast<size_t>(i * blocks)] = i;
    for (int i = 0; i < blocks; ++i)
      table[static_cast<size_t>(neighbours * blocks + i)] = pages - 1 - i;
    const mx::array tables(table.begin(), {neighbours + 1, blocks}, mx::int32);
    std::vector<float> bits;
    int done = 0;
    for (int chunk : chunks) {
      std::vector<int> positions(static_cast<size_t>(neighbours), 0), cu,
          context(static_cast<size_t>(neighbours), 1);
      for (int i = 0; i <= neighbours; ++i) cu.push_back(i);
      for (int i = 0; i < chunk; ++i) positions.push_back(done + i);
      cu.push_back(neighbours + chunk);
      context.push_back(done + chunk);
      auto ints = [](const std::vector<int>& x) {
        return mx::array(x.begin(), {static_cast<int>(x.size())}, mx::int32);
      };
      const BatchLayout layout{ints(positions), ints(cu), ints(context)};
      auto with_neighbours = [&](const mx::array& a) {
        if (neighbours == 0) return rows(a, done, done + chunk);
        return mx::concatenate({rows(a, 0, neighbours), rows(a, done, done + chunk)}, 0);
      };
      kv = kv_write(kv, with_neighbours(k), with_neighbours(v), layout, tables);
      const mx::array out =
          paged_attention(with_neighbours(q), kv, layout, tables, {.scale = 0.125f});
      const auto values = floats_of(rows(out, neighbours, neighbours + chunk));
      bits.insert(bits.end(), values.begin(), values.end());
      done += chunk;
    }
    return bits;
  };
  const auto whole = run(16, {total}, 0);
  EXPECT_TRUE(same_bits(whole, run(16, {total}, 5)));
  EXPECT_TRUE(same_bits(whole, run(16, std::vector<int>(total, 1), 0)));
  EXPECT_TRUE(same_bits(whole, run(48, {100, 1, 299, 200}, 3)));
  EXPECT_TRUE(same_bits(whole, run(544, std::vector<int>(total / 8, 8), 1)));
}

TEST(KvWrite, NeverMovesThePages) {
  const Case c = mixed_case(16);
  Fixture fixture(c, KernelPath::kNative, 3);
  const void* address = fixture.pages().bytes.data<void>();
  for (int step = 0; step < 3; ++step) {
    fixture.run();
    mx::array now = fixture.pages().bytes;
    now.eval();
    EXPECT_EQ(now.data<void>(), address);
  }
}

}  // namespace
}  // namespace octavo
