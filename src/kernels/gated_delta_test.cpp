#include "kernels/gated_delta.h"

#include "kernels/testing/delta_fixture.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {
namespace {

using namespace delta_fixture;

// A chunk of three sequences, then the rest, one of them in other pages.
const std::vector<StateStep> kTwoSteps = {{{20, 1, 3}, {{-1, 0}, {-1, 0}, {-1, 0}}},
                                          {{1, 9, 1}, {{0, 0}, {0, 1}, {0, 0}}}};

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
      const auto expected = run_steps(s, KernelPath::kReference, kTwoSteps);
      ++shapes;
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
  auto after = launch_counts();
  EXPECT_EQ(after["gated_delta.cpu"], before["gated_delta.cpu"] + 2 * runs);
  EXPECT_EQ(after["gated_delta.reference"], before["gated_delta.reference"] + 2 * shapes);
}

TEST(GatedDelta, EqualsTheReferenceWhereGatesSaturate) {
  const Subject s = with_saturated_gates(make_subject(DType::kFloat32, {2, 4, 32, 32}, 35));
  const auto expected = run_steps(s, KernelPath::kReference, kTwoSteps);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    const auto actual = run_steps(s, KernelPath::kNative, kTwoSteps);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_LT(largest_difference(expected[i], actual[i]), 2e-4f) << cpu::name_of(isa);
  }
}

constexpr int kTokens = 150;

TEST(GatedDelta, RowsHaveTheirBitsInEveryBatchAndChunk) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const Shape& shape : {Shape{2, 4, 64, 80}, Shape{1, 2, 192, 128}}) {
      const Subject s = make_subject(dtype, shape, kTokens);
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
        expect_bits_in_every_batch_and_chunk(
            kTokens, [&](const StateSteps& how) { return run_sequence(s, kTokens, how); });
      }
    }
  }
}

// Sets sum in one order, regardless of their register width.
TEST(GatedDelta, HasTheSameBitsOnEverySet) {
  const Subject s = make_subject(DType::kFloat32, {2, 4, 64, 80}, kTokens);
  std::vector<float> first;
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    const auto values = run_sequence(s, kTokens, {.chunk = kTokens});
    if (first.empty()) first = values;
    EXPECT_TRUE(same_bits(first, values)) << cpu::name_of(isa);
  }
}

TEST(GatedDelta, WritesAStateAfterEachRowThatCanBeTakenBack) {
  const Subject s = make_subject(DType::kBFloat16, {2, 4, 64, 80}, 12);
  expect_a_state_after_each_row(s, KernelPath::kReference);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    SCOPED_TRACE(cpu::name_of(isa));
    expect_a_state_after_each_row(s, KernelPath::kNative);
  }
}

// Only the layer's own heads are written, and the state of a sequence without rows is unchanged.
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
