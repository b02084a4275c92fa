#include "kernels/causal_conv.h"

#include <string>

#include "kernels/isa_scope.h"
#include "kernels/state_fixture.h"

namespace octavo {
namespace {

// Two layers share the pages; this is the second. Units of 32 channels, two to a page.
StateGeometry geometry_of(DType dtype, int conv_rows) {
  return {.columns = 6,
          .conv_rows = conv_rows,
          .conv_units = 5,
          .unit_channels = 32,
          .conv_dtype = dtype,
          .conv_column = 1,
          .first_unit = 5,
          .units_per_page = 2};
}

int page_bytes_of(const StateGeometry& g) { return static_cast<int>(2 * g.unit_bytes()) + 64; }

constexpr int kFirstColumn = 48;

struct Subject {
  StateGeometry geometry;
  mx::array x;  // [tokens, kFirstColumn + channels + 16]
  ConvWeights weights;
  ConvOptions options;
};

Subject make_subject(DType dtype, int conv_rows, bool biased, ConvActivation activation,
                     int tokens) {
  std::mt19937 random(3);
  const StateGeometry g = geometry_of(dtype, conv_rows);
  const mx::Dtype type = mlx_dtype(dtype);
  ConvWeights weights{random_array(random, {conv_rows + 1, g.channels()}, type)};
  if (biased) weights.bias = random_array(random, {g.channels()}, type);
  return {g,
          random_array(random, {tokens, kFirstColumn + g.channels() + 16}, type),
          weights,
          {.first_column = kFirstColumn, .activation = activation}};
}

float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-5f : dtype == DType::kFloat16 ? 1e-2f : 8e-2f;
}

// Rows of three sequences in two steps: a chunk, then what is left, one of them in other pages.
std::vector<mx::array> two_steps(const Subject& s, KernelPath path) {
  StateFixture fixture(s.geometry, path, page_bytes_of(s.geometry), 3);
  std::vector<mx::array> outs;
  const auto step = [&](const std::vector<int>& rows, int begin,
                        const std::vector<std::pair<int, int>>& sets) {
    const BatchLayout layout = state_layout(rows);
    const mx::array x = rows_between(s.x, begin, begin + layout.tokens());
    auto [y, pages] = causal_conv(fixture.pages(), x, s.weights, s.options, layout,
                                  fixture.table({0, 1, 2}, sets));
    fixture.rebind(pages);
    outs.push_back(y);
  };
  step({9, 1, 2}, 0, {{-1, 0}, {-1, 0}, {-1, 0}});
  step({1, 7, 1}, 12, {{0, 0}, {0, 1}, {0, 0}});
  return outs;
}

TEST(CausalConv, EqualsTheReference) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (int conv_rows : {1, 2, 3, 7}) {
      for (bool biased : {false, true}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << conv_rows << " " << biased);
        const Subject s = make_subject(dtype, conv_rows, biased,
                                       biased ? ConvActivation::kNone : ConvActivation::kSilu, 21);
        const auto expected = two_steps(s, KernelPath::kReference);
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
  }
  auto after = launch_counts();
  EXPECT_EQ(after["causal_conv.cpu"], before["causal_conv.cpu"] + 2 * runs);
  EXPECT_EQ(after["causal_conv.reference"], before["causal_conv.reference"] + 2 * 24);
}

constexpr int kTokens = 150;

TEST(CausalConv, RowsHaveTheirBitsInEveryBatchAndChunk) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Subject s = make_subject(dtype, 3, false, ConvActivation::kSilu, kTokens);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
      expect_bits_in_every_batch_and_chunk(kTokens, [&](const StateSteps& how) {
        return run_in_steps(StateFixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry),
                                         how.neighbours + 1),
                            kTokens, how,
                            [&](StateFixture& fixture, int begin, int count,
                                const BatchLayout& layout, const mx::array& table) {
                              const mx::array x =
                                  behind_neighbours(s.x, how.neighbours, begin, count);
                              auto [y, pages] = causal_conv(fixture.pages(), x, s.weights,
                                                            s.options, layout, table);
                              y.eval();
                              fixture.rebind(pages);
                              return y;
                            });
      });
    }
  }
}

// Nothing but the layer's own units is written, and a sequence without rows keeps what it has.
TEST(CausalConv, LeavesTheRestOfThePagesAlone) {
  const Subject s = make_subject(DType::kBFloat16, 3, false, ConvActivation::kSilu, 8);
  StateFixture fixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), 2);
  const auto [y, pages] =
      causal_conv(fixture.pages(), s.x, s.weights, s.options, state_layout({8, 0}),
                  fixture.table({0, 1}, {{-1, 0}, {-1, 0}}));
  fixture.rebind(pages);
  const auto page = static_cast<size_t>(page_bytes_of(s.geometry));
  const size_t unit = s.geometry.unit_bytes();
  const auto bytes = fixture.bytes_of(0, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    // Blocks 5 to 9 from column 1 on: the second half of column 3, and columns 4 and 5.
    const size_t column = i / page, at = i % page;
    const bool ours = (column == 3 && at >= unit && at < 2 * unit) || (column > 3 && at < 2 * unit);
    if (!ours) {
      EXPECT_EQ(bytes[i], 0xff) << i;
    }
  }
  for (uint8_t byte : fixture.bytes_of(1, 0)) EXPECT_EQ(byte, 0xff);
}

}  // namespace
}  // namespace octavo
