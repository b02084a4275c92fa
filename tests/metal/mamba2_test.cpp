#include "kernels/mamba2.h"

#include "kernels/testing/mamba_fixture.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;

// Three sequences in three steps; two of them move to other pages.
const std::vector<StateStep> kMambaSteps = {{{9, 1, 3}, {{-1, 0}, {-1, 0}, {-1, 0}}},
                                            {{1, 4, 0}, {{0, 0}, {0, 1}, {0, 0}}},
                                            {{1, 1, 2}, {{0, 1}, {1, 1}, {0, 0}}}};

void expect_mamba_triangle(const mamba_fixture::Subject& s, float tolerance) {
  const auto run = [&](KernelPath path) { return mamba_fixture::run_steps(s, path, kMambaSteps); };
  const auto expected = launching("mamba2.reference", [&] { return run(KernelPath::kReference); });
  const auto on_cpu = launching("mamba2.cpu", [&] { return run(KernelPath::kNative); });
  SimulatedMetal metal;
  const auto on_metal = run(KernelPath::kNative);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(largest_difference(expected[i], on_cpu[i]), tolerance);
    EXPECT_LT(largest_difference(expected[i], on_metal[i]), tolerance);
  }
  EXPECT_EQ(metal.counts()["mamba2"].launches, 3u);
}

TEST(MetalMamba2, AgreesWithTheReferenceAndTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(name_of(dtype));
    expect_mamba_triangle(mamba_fixture::make_subject(dtype, {1, 4, 128, 64}, 22),
                          mamba_fixture::tolerance_of(dtype));
  }
}

TEST(MetalMamba2, EveryShapeAgrees) {
  for (const mamba_fixture::Shape& shape :
       {mamba_fixture::Shape{3, 3, 16, 48}, mamba_fixture::Shape{2, 6, 80, 112},
        mamba_fixture::Shape{1, 1, 256, 256}}) {
    SCOPED_TRACE(testing::Message() << shape.state_dim << "x" << shape.head_dim);
    expect_mamba_triangle(mamba_fixture::make_subject(DType::kFloat32, shape, 22),
                          mamba_fixture::tolerance_of(DType::kFloat32));
  }
}

TEST(MetalMamba2, AgreesWhereStepsSaturate) {
  const mamba_fixture::Subject s = mamba_fixture::make_subject(DType::kFloat32, {1, 2, 64, 32}, 22);
  expect_mamba_triangle(with_saturated_steps(s), 2e-2f);
}

TEST(MetalMamba2, RowsHaveTheSameBitsInEveryBatchAndChunk) {
  constexpr int kTokens = 20;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const mamba_fixture::Subject s = mamba_fixture::make_subject(dtype, {1, 2, 80, 48}, kTokens);
    const SimulatedMetal metal;
    expect_bits_in_every_batch_and_chunk(
        kTokens,
        [&](const StateSteps& how) { return mamba_fixture::run_sequence(s, kTokens, how); },
        {1, 2, 7}, {1});
  }
}

// Decode and prefill read a head's state once and write it once.
TEST(MetalMamba2, TheStateIsReadAndWrittenOncePerStep) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  for (const int tokens : {1, 12}) {
    const mamba_fixture::Subject s =
        mamba_fixture::make_subject(DType::kBFloat16, {1, 2, 128, 32}, 13);
    StateFixture fixture(s.geometry, KernelPath::kNative, mamba_fixture::page_bytes_of(s.geometry),
                         1);
    SimulatedMetal metal;
    const auto step = [&](int begin, int count, int from) {
      const Mamba2Rows rows = mamba_fixture::rows_of(s.rows, begin, begin + count);
      fixture.rebind(mamba2(fixture.pages(), rows, s.weights, s.options, state_layout({count}),
                            fixture.table({0}, {{from, 0}}))
                         .pages);
    };
    step(0, 1, -1);
    metal.reset();
    step(1, tokens, 0);
    const auto pages = metal.counts()["mamba2"].arguments["pages"];
    const uint64_t state = 2 * s.geometry.head_bytes();
    EXPECT_EQ(pages.load_bytes, state);
    EXPECT_EQ(pages.store_bytes, state);
    EXPECT_EQ(metal.counts()["mamba2"].barriers, 0u);
  }
}

TEST(MetalMamba2, WritesAStateAfterEachRowThatCanBeTakenBack) {
  const mamba_fixture::Subject s =
      mamba_fixture::make_subject(DType::kBFloat16, {1, 2, 80, 48}, 12);
  const SimulatedMetal metal;
  mamba_fixture::expect_a_state_after_each_row(s, KernelPath::kNative);
}

}  // namespace
}  // namespace octavo
