#include "kernels/gated_delta.h"

#include "kernels/isa_scope.h"
#include "kernels/state_fixture.h"

namespace octavo {
namespace {

struct Shape {
  int key_heads, value_heads, k_dim, v_dim;
};

// Two layers share the pages; this is the second. Three heads to a page.
StateGeometry geometry_of(const Shape& shape) {
  return {.columns = (2 * shape.value_heads + 2) / 3,
          .heads = shape.value_heads,
          .k_dim = shape.k_dim,
          .v_dim = shape.v_dim,
          .first_head = shape.value_heads,
          .heads_per_page = 3};
}

int page_bytes_of(const StateGeometry& g) { return static_cast<int>(3 * g.head_bytes()) + 64; }

struct Subject {
  StateGeometry geometry;
  GatedDeltaRows rows;
  GatedDeltaWeights weights;
  GatedDeltaOptions options;
};

Subject make_subject(DType dtype, const Shape& s, int tokens) {
  std::mt19937 random(17);
  const mx::Dtype type = mlx_dtype(dtype);
  const int keys = 2 * s.key_heads * s.k_dim;
  const int values = s.value_heads * s.v_dim;
  const mx::array ones = mx::ones({s.value_heads});
  return {geometry_of(s),
          {.qkv = random_array(random, {tokens, keys + values}, type),
           .gates = random_array(random, {tokens, 24 + values + 2 * s.value_heads}, type),
           .z_column = 24 + s.value_heads,
           .a_column = 24 + s.value_heads + values,
           .b_column = 24},
          // Decays near 1, as trained models have them: what a state forgets late, tests see late.
          {mx::subtract(random_array(random, {s.value_heads}), mx::multiply(ones, mx::array(3.0f))),
           random_array(random, {s.value_heads}), random_array(random, {s.v_dim}, type)},
          {.key_heads = s.key_heads, .norm_eps = 1e-6f}};
}

GatedDeltaRows rows_of(const GatedDeltaRows& all, int begin, int end) {
  GatedDeltaRows rows = all;
  rows.qkv = rows_between(all.qkv, begin, end);
  rows.gates = rows_between(all.gates, begin, end);
  return rows;
}

// Rows of three sequences in two steps: a chunk, then what is left, one of them in other pages.
std::vector<mx::array> two_steps(const Subject& s, KernelPath path) {
  StateFixture fixture(s.geometry, path, page_bytes_of(s.geometry), 3);
  std::vector<mx::array> outs;
  const auto step = [&](const std::vector<int>& rows, int begin,
                        const std::vector<std::pair<int, int>>& sets) {
    const BatchLayout layout = state_layout(rows);
    const auto [out, pages] =
        gated_delta(fixture.pages(), rows_of(s.rows, begin, begin + layout.tokens()), s.weights,
                    s.options, layout, fixture.table({0, 1, 2}, sets));
    fixture.rebind(pages);
    outs.push_back(out);
  };
  step({20, 1, 3}, 0, {{-1, 0}, {-1, 0}, {-1, 0}});
  step({1, 9, 1}, 24, {{0, 0}, {0, 1}, {0, 0}});
  return outs;
}

float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-4f : dtype == DType::kFloat16 ? 2e-2f : 0.13f;
}

TEST(GatedDelta, EqualsTheReference) {
  auto before = launch_counts();
  int64_t shapes = 0, runs = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const Shape& shape : {Shape{2, 4, 128, 128}, Shape{3, 3, 16, 48}, Shape{1, 5, 64, 16},
                               Shape{1, 2, 256, 256}, Shape{2, 18, 32, 112}}) {
      SCOPED_TRACE(testing::Message()
                   << name_of(dtype) << " " << shape.key_heads << "/" << shape.value_heads << " "
                   << shape.k_dim << "x" << shape.v_dim);
      const Subject s = make_subject(dtype, shape, 35);
      const auto expected = two_steps(s, KernelPath::kReference);
      ++shapes;
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(cpu::name_of(isa));
        const auto actual = two_steps(s, KernelPath::kNative);
        for (size_t i = 0; i < actual.size(); ++i)
          EXPECT_LT(largest_difference(expected[i], actual[i]), tolerance_of(dtype));
        ++runs;
      }
    }
  }
  auto after = launch_counts();
  EXPECT_EQ(after["gated_delta.cpu"], before["gated_delta.cpu"] + 2 * runs);
  EXPECT_EQ(after["gated_delta.reference"], before["gated_delta.reference"] + 2 * shapes);
}

// Large gates: a decay of nothing, of everything, an update of nothing.
TEST(GatedDelta, EqualsTheReferenceWhereGatesSaturate) {
  Subject s = make_subject(DType::kFloat32, {2, 4, 32, 32}, 35);
  const mx::array large = mx::multiply(s.rows.gates, mx::array(60.0f));
  const int tail = s.rows.gates.shape(1) - s.geometry.heads;
  s.rows.gates =
      mx::contiguous(mx::concatenate({mx::slice(s.rows.gates, {0, 0}, {35, tail}),
                                      mx::slice(large, {0, tail}, {35, s.rows.gates.shape(1)})},
                                     1));
  const auto expected = two_steps(s, KernelPath::kReference);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    const auto actual = two_steps(s, KernelPath::kNative);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_LT(largest_difference(expected[i], actual[i]), 2e-4f) << cpu::name_of(isa);
  }
}

constexpr int kTokens = 150;

// All rows of one sequence.
std::vector<float> run(const Subject& s, const StateSteps& how) {
  return run_in_steps(
      StateFixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), how.neighbours + 1),
      kTokens, how,
      [&](StateFixture& fixture, int begin, int count, const BatchLayout& layout,
          const mx::array& table) {
        GatedDeltaRows rows = s.rows;
        rows.qkv = behind_neighbours(s.rows.qkv, how.neighbours, begin, count);
        rows.gates = behind_neighbours(s.rows.gates, how.neighbours, begin, count);
        auto [y, pages] = gated_delta(fixture.pages(), rows, s.weights, s.options, layout, table);
        y.eval();
        fixture.rebind(pages);
        return y;
      });
}

TEST(GatedDelta, RowsHaveTheirBitsInEveryBatchAndChunk) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const Shape& shape : {Shape{2, 4, 64, 80}, Shape{1, 2, 192, 128}}) {
      const Subject s = make_subject(dtype, shape, kTokens);
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
        expect_bits_in_every_batch_and_chunk(kTokens,
                                             [&](const StateSteps& how) { return run(s, how); });
      }
    }
  }
}

// Sets with a fused multiply-add sum in one order, whatever the width of their registers.
TEST(GatedDelta, HasTheSameBitsOnEverySetWithFusedMultiplyAdd) {
  const Subject s = make_subject(DType::kFloat32, {2, 4, 64, 80}, kTokens);
  std::vector<float> first;
  for (const cpu::Isa isa : cpu::available_isas()) {
    if (isa == cpu::Isa::kScalar) continue;
    const IsaScope scope(isa);
    const auto values = run(s, {.chunk = kTokens});
    if (first.empty()) first = values;
    EXPECT_TRUE(same_bits(first, values)) << cpu::name_of(isa);
  }
}

// Nothing but the layer's own heads is written, and a sequence without rows keeps what it has.
TEST(GatedDelta, LeavesTheRestOfThePagesAlone) {
  const Subject s = make_subject(DType::kFloat32, {2, 4, 16, 16}, 8);
  StateFixture fixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), 2);
  auto [y, pages] = gated_delta(fixture.pages(), s.rows, s.weights, s.options, state_layout({8, 0}),
                                fixture.table({0, 1}, {{-1, 0}, {-1, 0}}));
  fixture.rebind(pages);
  const auto page = static_cast<size_t>(page_bytes_of(s.geometry));
  const size_t head = s.geometry.head_bytes();
  const auto bytes = fixture.bytes_of(0, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    // Blocks 4 to 7: all but the first of column 1, and the first two of column 2.
    const size_t column = i / page, at = i % page;
    const bool ours =
        (column == 1 && at >= head && at < 3 * head) || (column == 2 && at < 2 * head);
    if (!ours) {
      EXPECT_EQ(bytes[i], 0xff) << i;
    }
  }
  for (uint8_t byte : fixture.bytes_of(1, 0)) EXPECT_EQ(byte, 0xff);
}

}  // namespace
}  // namespace octavo
