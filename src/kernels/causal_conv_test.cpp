#include "kernels/causal_conv.h"

#include "kernels/testing/conv_fixture.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {
namespace {

using namespace conv_fixture;

// A chunk of three sequences, then the rest, one of them in other pages.
const std::vector<StateStep> kTwoSteps = {{{9, 1, 2}, {{-1, 0}, {-1, 0}, {-1, 0}}},
                                          {{1, 7, 1}, {{0, 0}, {0, 1}, {0, 0}}}};

TEST(CausalConv, EqualsTheReference) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (int conv_rows : {1, 2, 3, 7}) {
      for (bool biased : {false, true}) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << conv_rows << " " << biased);
        const Subject s = make_subject({dtype, conv_rows, biased, dtype}, 21);
        const auto expected = run_steps(s, KernelPath::kReference, kTwoSteps);
        for (const cpu::Isa isa : cpu::available_isas()) {
          const IsaScope scope(isa);
          SCOPED_TRACE(cpu::name_of(isa));
          const auto actual = run_steps(s, KernelPath::kNative, kTwoSteps);
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
    const Subject s = make_subject({dtype, 3, false, dtype}, kTokens);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
      expect_bits_in_every_batch_and_chunk(
          kTokens, [&](const StateSteps& how) { return run_sequence(s, kTokens, how); });
    }
  }
}

TEST(CausalConv, WritesAStateAfterEachRowThatCanBeTakenBack) {
  for (const int conv_rows : {2, 3, 7}) {
    const Subject s = make_subject({DType::kBFloat16, conv_rows, false, DType::kBFloat16}, 12);
    expect_a_state_after_each_row(s, KernelPath::kReference);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      SCOPED_TRACE(testing::Message() << conv_rows << " " << cpu::name_of(isa));
      expect_a_state_after_each_row(s, KernelPath::kNative);
    }
  }
}

// Only the layer's own units are written, and the state of a sequence without rows is unchanged.
TEST(CausalConv, LeavesTheRestOfThePagesAlone) {
  const Subject s = make_subject({DType::kBFloat16, 3, false, DType::kBFloat16}, 8);
  StateFixture fixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), 2);
  const auto [y, pages] =
      causal_conv(fixture.pages(), s.x, s.weights, s.options, state_layout({8, 0}),
                  fixture.table({0, 1}, {{-1, 0}, {-1, 0}}));
  fixture.rebind(pages);
  const auto page = static_cast<size_t>(page_bytes_of(s.geometry));
  const size_t unit = s.geometry.unit_bytes();
  const auto bytes = fixture.bytes_of(0, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    // Blocks 5 to 9 starting at column 1: the second half of column 3, and columns 4 and 5.
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
