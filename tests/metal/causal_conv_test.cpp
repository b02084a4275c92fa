#include "kernels/causal_conv.h"

#include "kernels/testing/conv_fixture.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;
using namespace conv_fixture;

// Three sequences in three steps: one has more rows than a work item, one fewer than the state, one
// has none.
const std::vector<StateStep> kThreeSteps = {{{67, 1, 2}, {{-1, 0}, {-1, 0}, {-1, 0}}},
                                            {{1, 7, 0}, {{0, 0}, {0, 1}, {0, 0}}},
                                            {{2, 34, 1}, {{0, 1}, {1, 1}, {0, 0}}}};

TEST(MetalCausalConv, AgreesWithTheReferenceAndTheCpu) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const int conv_rows : {1, 3, 7}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << conv_rows);
      const DType weights = conv_rows == 7 ? DType::kFloat32 : dtype;
      const Subject s = make_subject({dtype, conv_rows, conv_rows != 3, weights, 7}, 115);
      const auto run = [&](KernelPath path) { return run_steps(s, path, kThreeSteps); };
      const auto expected =
          launching("causal_conv.reference", [&] { return run(KernelPath::kReference); });
      const auto on_cpu = launching("causal_conv.cpu", [&] { return run(KernelPath::kNative); });
      SimulatedMetal metal;
      const auto on_metal = run(KernelPath::kNative);
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_LT(largest_difference(expected[i], on_cpu[i]), tolerance_of(dtype));
        EXPECT_LT(largest_difference(expected[i], on_metal[i]), tolerance_of(dtype));
      }
      EXPECT_EQ(metal.counts()["causal_conv"].launches, 3u);
    }
  }
}

TEST(MetalCausalConv, WritesAStateAfterEachRowThatCanBeTakenBack) {
  const Subject s = make_subject({DType::kBFloat16, 3, false, DType::kBFloat16}, 12);
  const SimulatedMetal metal;
  expect_a_state_after_each_row(s, KernelPath::kNative);
}

TEST(MetalCausalConv, RowsHaveTheSameBitsInEveryBatchAndChunk) {
  constexpr int kTokens = 70;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Subject s = make_subject({dtype, 3, false, dtype}, kTokens);
    const SimulatedMetal metal;
    expect_bits_in_every_batch_and_chunk(
        kTokens, [&](const StateSteps& how) { return run_sequence(s, kTokens, how); },
        {1, 2, 16, 33}, {1});
  }
}

}  // namespace
}  // namespace octavo
