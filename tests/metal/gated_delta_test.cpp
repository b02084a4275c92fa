#include "kernels/gated_delta.h"

#include "kernels/testing/delta_fixture.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;
using namespace delta_fixture;

// Three sequences in three steps; two of them move to other pages.
const std::vector<StateStep> kThreeSteps = {{{9, 1, 3}, {{-1, 0}, {-1, 0}, {-1, 0}}},
                                            {{1, 4, 0}, {{0, 0}, {0, 1}, {0, 0}}},
                                            {{1, 1, 2}, {{0, 1}, {1, 1}, {0, 0}}}};

void expect_triangle(const Subject& s, float tolerance) {
  const auto run = [&](KernelPath path) { return run_steps(s, path, kThreeSteps); };
  const auto expected =
      launching("gated_delta.reference", [&] { return run(KernelPath::kReference); });
  const auto on_cpu = launching("gated_delta.cpu", [&] { return run(KernelPath::kNative); });
  SimulatedMetal metal;
  const auto on_metal = run(KernelPath::kNative);
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LT(largest_difference(expected[i], on_cpu[i]), tolerance);
    EXPECT_LT(largest_difference(expected[i], on_metal[i]), tolerance);
  }
  EXPECT_EQ(metal.counts()["gated_delta"].launches, 3u);
  EXPECT_EQ(metal.counts()["gated_delta_norm"].launches, 3u);
}

TEST(MetalGatedDelta, AgreesWithTheReferenceAndTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(name_of(dtype));
    expect_triangle(make_subject(dtype, {2, 4, 128, 64}, 22), tolerance_of(dtype));
  }
}

TEST(MetalGatedDelta, EveryShapeAgrees) {
  for (const Shape& shape :
       {Shape{3, 3, 16, 48}, Shape{1, 5, 64, 16}, Shape{1, 1, 256, 256}, Shape{2, 6, 80, 112}}) {
    SCOPED_TRACE(testing::Message() << shape.k_dim << "x" << shape.v_dim);
    expect_triangle(make_subject(DType::kFloat32, shape, 22), tolerance_of(DType::kFloat32));
  }
}

TEST(MetalGatedDelta, AgreesWhereGatesSaturate) {
  const Subject s = make_subject(DType::kFloat32, {1, 2, 64, 32}, 22);
  expect_triangle(with_saturated_gates(s), tolerance_of(DType::kFloat32));
}

TEST(MetalGatedDelta, RowsHaveTheSameBitsInEveryBatchAndChunk) {
  constexpr int kTokens = 20;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Subject s = make_subject(dtype, {1, 2, 80, 48}, kTokens);
    const SimulatedMetal metal;
    expect_bits_in_every_batch_and_chunk(
        kTokens, [&](const StateSteps& how) { return run_sequence(s, kTokens, how); }, {1, 2, 7},
        {1});
  }
}

TEST(MetalGatedDelta, WritesAStateAfterEachRowThatCanBeTakenBack) {
  const Subject s = make_subject(DType::kBFloat16, {1, 2, 80, 48}, 12);
  const SimulatedMetal metal;
  expect_a_state_after_each_row(s, KernelPath::kNative);
}

// Decode and prefill read a head's state once and write it once.
TEST(MetalGatedDelta, TheStateIsReadAndWrittenOncePerStep) {
  if (!metal_sim::kCountsAccesses) GTEST_SKIP() << "only the simulator counts reads";
  for (const int tokens : {1, 12}) {
    const Subject s = make_subject(DType::kBFloat16, {1, 2, 128, 32}, 13);
    StateFixture fixture(s.geometry, KernelPath::kNative, page_bytes_of(s.geometry), 1);
    SimulatedMetal metal;
    const auto step = [&](int begin, int count, int from) {
      const GatedDeltaRows rows = rows_of(s.rows, begin, begin + count);
      fixture.rebind(gated_delta(fixture.pages(), rows, s.weights, s.options, state_layout({count}),
                                 fixture.table({0}, {{from, 0}}))
                         .pages);
    };
    step(0, 1, -1);
    metal.reset();
    step(1, tokens, 0);
    const auto pages = metal.counts()["gated_delta"].arguments["pages"];
    const uint64_t state = 2 * s.geometry.head_bytes();
    EXPECT_EQ(pages.load_bytes, state);
    EXPECT_EQ(pages.store_bytes, state);
    EXPECT_EQ(metal.counts()["gated_delta"].barriers, 0u);
  }
}

}  // namespace
}  // namespace octavo
