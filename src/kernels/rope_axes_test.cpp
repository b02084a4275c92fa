// Rotations by positions on several axes, apart from the positions in the cache.
#include "kernels/testing/rope_axes.h"
#include "kernels/testing/isa_scope.h"

namespace octavo {
namespace {

using namespace rope_axes;
using qkv_variants::kDtypes;
using qkv_variants::tolerance_of;

TEST(RopeAxes, QkvWriteAndQueriesAloneEqualTheReference) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const DType dtype : kDtypes) {
    for (const int dim : {64, 72, 80, 96, 128}) {
      std::mt19937 random(3);
      const PagedCase c = qkv_variants::case_of(dtype, dim);
      const QkvOptions options = options_of(random, dim, dtype);
      const BatchLayout layout =
          with_random_positions(random, PagedFixture(c, KernelPath::kNative, 2).layout());
      const mx::array qkv = qkv_variants::random_rows(random, c, options, layout.tokens());
      const mx::array q =
          mx::contiguous(mx::slice(qkv, {0, 0}, {layout.tokens(), qkv_variants::kQHeads * dim}));
      const auto expected = run(c, options, qkv, layout, KernelPath::kReference);
      EXPECT_EQ(largest_difference(prepare_queries(q, layout, options, KernelPath::kReference),
                                   expected[0]),
                0);
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(testing::Message() << name_of(dtype) << dim << cpu::name_of(isa));
        const auto actual = run(c, options, qkv, layout);
        // Angles of up to 3000 are rounded to float32 and then reduced differently by MLX.
        EXPECT_LT(largest_difference(expected[0], actual[0]), 10 * tolerance_of(dtype));
        EXPECT_LT(largest_difference(expected[1], actual[1]), 10 * tolerance_of(dtype));
        EXPECT_TRUE(
            same_bits(floats_of(prepare_queries(q, layout, options)), floats_of(actual[0])));
        ++runs;
      }
    }
  }
  EXPECT_EQ(launch_counts()["qkv_write.cpu"], before["qkv_write.cpu"] + runs);
}

TEST(RopeAxes, EqualPositionsOnEveryAxisHaveTheBitsOfText) {
  for (const DType dtype : kDtypes) {
    std::mt19937 random(4);
    const PagedCase c = qkv_variants::case_of(dtype, 72);
    const QkvOptions options = options_of(random, 72, dtype);
    const BatchLayout text = PagedFixture(c, KernelPath::kNative, 2).layout();
    const mx::array qkv = qkv_variants::random_rows(random, c, options, text.tokens());
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      SCOPED_TRACE(testing::Message() << name_of(dtype) << cpu::name_of(isa));
      // The axes of pairs mean nothing without positions on them.
      QkvOptions plain = options;
      plain.rope_axes.reset();
      const auto expected = run(c, plain, qkv, text);
      const auto with_axes = run(c, options, qkv, text);
      const auto thrice = run(c, options, qkv, with_own_positions(text));
      const auto first = run(c, plain, qkv, with_own_positions(text));
      for (const size_t i : {0u, 1u}) {
        for (const auto* other : {&with_axes, &thrice, &first})
          EXPECT_TRUE(same_bits(floats_of((*other)[i]), floats_of(expected[i])));
      }
      const auto apart = run(c, options, qkv, with_random_positions(random, text));
      EXPECT_FALSE(same_bits(floats_of(apart[0]), floats_of(expected[0])));
    }
  }
}

// A row's rotation depends on its own positions only: the last sequence alone and after the others.
TEST(RopeAxes, ARowHasTheSameBitsInEveryBatch) {
  for (const DType dtype : kDtypes) {
    std::mt19937 random(5);
    const PagedCase c = qkv_variants::case_of(dtype, 72);
    const QkvOptions options = options_of(random, 72, dtype);
    const BatchLayout layout =
        with_random_positions(random, PagedFixture(c, KernelPath::kNative, 2).layout());
    const int rows = layout.tokens();
    const mx::array qkv = qkv_variants::random_rows(random, c, options, rows);
    const auto q = floats_of(run(c, options, qkv, layout)[0]);
    const auto width = static_cast<std::ptrdiff_t>(q.size()) / rows;
    for (const int row : {0, 9, rows - 1}) {
      mx::array at = mx::contiguous(mx::slice(*layout.rope_positions, {0, row}, {kAxes, row + 1}));
      at.eval();
      const BatchLayout alone =
          with_positions({int_array({0}), int_array({0, 1}), int_array({1})}, at);
      const mx::array own =
          mx::contiguous(mx::slice(qkv, {row, 0}, {row + 1, qkv_variants::kQHeads * 72}));
      EXPECT_TRUE(same_bits(floats_of(prepare_queries(own, alone, options)),
                            {q.begin() + row * width, q.begin() + (row + 1) * width}));
    }
  }
}

TEST(RopeAxes, LatentWriteEqualsTheReferenceAndText) {
  const latent_fixture::LatentShape shape{256, 32, 64, 10};
  for (const DType dtype : kDtypes) {
    std::mt19937 random(6);
    const PagedCase c = latent_fixture::case_of(shape, dtype);
    latent_fixture::Inputs in = latent_fixture::inputs_of(shape, dtype, 31);
    const auto plain = latent_fixture::run(c, in, KernelPath::kNative);
    in.options.rope_axes = numbers_below(random, {shape.rope / 2}, kAxes);
    const BatchLayout text = PagedFixture(c, KernelPath::kNative, 2).layout();
    const BatchLayout layout = with_random_positions(random, text);
    const auto expected = run_latent(c, in, layout, KernelPath::kReference);
    for (const cpu::Isa isa : cpu::available_isas()) {
      const IsaScope scope(isa);
      SCOPED_TRACE(testing::Message() << name_of(dtype) << cpu::name_of(isa));
      const auto actual = run_latent(c, in, layout);
      const float tolerance = dtype == DType::kFloat32   ? 2e-4f
                              : dtype == DType::kFloat16 ? 1e-2f
                                                         : 6.4e-2f;
      for (const size_t i : {0u, 1u})
        EXPECT_LT(largest_difference(expected[i], actual[i]), tolerance);
      EXPECT_TRUE(same_bits(floats_of(run_latent(c, in, with_own_positions(text))[0]),
                            floats_of(plain[0])));
    }
  }
}

}  // namespace
}  // namespace octavo
