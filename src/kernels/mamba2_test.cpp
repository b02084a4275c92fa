#include "kernels/mamba2.h"

#include "kernels/testing/isa_scope.h"
#include "kernels/testing/mamba_fixture.h"

namespace octavo {
namespace {

// A chunk of three sequences, then the rest, one of them in other pages.
const std::vector<StateStep> kMambaSteps = {{{20, 1, 3}, {{-1, 0}, {-1, 0}, {-1, 0}}},
                                            {{1, 9, 1}, {{0, 0}, {0, 1}, {0, 0}}}};

TEST(Mamba2, EqualsTheReference) {
  auto before = launch_counts();
  int64_t shapes = 0, runs = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const mamba_fixture::Shape& shape :
         {mamba_fixture::Shape{1, 4, 128, 64}, mamba_fixture::Shape{3, 3, 16, 48},
          mamba_fixture::Shape{2, 18, 32, 80}, mamba_fixture::Shape{1, 2, 256, 256}}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << shape.groups << "/" << shape.heads
                                      << " " << shape.state_dim << "x" << shape.head_dim);
      const mamba_fixture::Subject s = mamba_fixture::make_subject(dtype, shape, 35);
      const auto expected = mamba_fixture::run_steps(s, KernelPath::kReference, kMambaSteps);
      ++shapes;
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(cpu::name_of(isa));
        const auto actual = mamba_fixture::run_steps(s, KernelPath::kNative, kMambaSteps);
        for (size_t i = 0; i < actual.size(); ++i) {
          EXPECT_LT(largest_difference(expected[i], actual[i]), mamba_fixture::tolerance_of(dtype));
        }
        ++runs;
      }
    }
  }
  auto after = launch_counts();
  EXPECT_EQ(after["mamba2.cpu"], before["mamba2.cpu"] + 2 * runs);
  EXPECT_EQ(after["mamba2.reference"], before["mamba2.reference"] + 2 * shapes);
}

TEST(Mamba2, EqualsTheReferenceWhereStepsSaturate) {
  const mamba_fixture::Subject s =
      with_saturated_steps(mamba_fixture::make_subject(DType::kFloat32, {2, 4, 32, 32}, 35));
  const auto expected = mamba_fixture::run_steps(s, KernelPath::kReference, kMambaSteps);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    const auto actual = mamba_fixture::run_steps(s, KernelPath::kNative, kMambaSteps);
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_LT(largest_difference(expected[i], actual[i]), 2e-2f) << cpu::name_of(isa);
  }
}

constexpr int kMambaTokens = 150;

TEST(Mamba2, RowsHaveTheirBitsInEveryBatchAndChunk) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const mamba_fixture::Subject s =
        mamba_fixture::make_subject(dtype, {2, 4, 64, 80}, kMambaTokens);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
      expect_bits_in_every_batch_and_chunk(kMambaTokens, [&](const StateSteps& how) {
        return mamba_fixture::run_sequence(s, kMambaTokens, how);
      });
    }
  }
}

// Only the layer's own heads are written, and the state of a sequence without rows is unchanged.
TEST(Mamba2, LeavesTheRestOfThePagesAlone) {
  const mamba_fixture::Subject s = mamba_fixture::make_subject(DType::kFloat32, {2, 4, 16, 16}, 8);
  StateFixture fixture(s.geometry, KernelPath::kNative, mamba_fixture::page_bytes_of(s.geometry),
                       2);
  auto [y, pages] = mamba2(fixture.pages(), s.rows, s.weights, s.options, state_layout({8, 0}),
                           fixture.table({0, 1}, {{-1, 0}, {-1, 0}}));
  fixture.rebind(pages);
  const auto page = static_cast<size_t>(mamba_fixture::page_bytes_of(s.geometry));
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

TEST(Mamba2, WritesAStateAfterEachRowThatCanBeTakenBack) {
  const mamba_fixture::Subject s =
      mamba_fixture::make_subject(DType::kBFloat16, {2, 4, 64, 80}, 12);
  mamba_fixture::expect_a_state_after_each_row(s, KernelPath::kReference);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    SCOPED_TRACE(cpu::name_of(isa));
    mamba_fixture::expect_a_state_after_each_row(s, KernelPath::kNative);
  }
}

}  // namespace
}  // namespace octavo
