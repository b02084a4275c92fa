// The operations between the projections and attention on Metal: compared with plain MLX and the
// CPU, and batches with single rows.
#include "kernels/qkv_write.h"

#include "kernels/testing/latent_fixture.h"
#include "kernels/testing/qkv_variants.h"
#include "kernels/testing/rope_axes.h"
#include "metal_sim/simulator.h"

namespace octavo {
namespace {

using metal_sim::SimulatedMetal;
using qkv_variants::kDtypes;
using qkv_variants::Variant;

TEST(MetalQkvWrite, AgreesWithTheReferenceAndTheCpu) {
  for (const DType dtype : kDtypes) {
    for (int dim : {64, 72}) {
      std::mt19937 random(3);
      const PagedCase c = qkv_variants::case_of(dtype, dim);
      for (const Variant& variant : qkv_variants::variants(random, dim, mlx_dtype(dtype))) {
        SCOPED_TRACE(testing::Message() << variant.name << " " << name_of(dtype) << " " << dim);
        PagedFixture oracle(c, KernelPath::kReference, 2);
        const mx::array qkv =
            qkv_variants::random_rows(random, c, variant.options, oracle.new_rows());
        const auto run = [&] {
          return PagedFixture(c, KernelPath::kNative, 2).run_fused(variant.options, qkv);
        };
        const auto expected = launching("qkv_write.reference",
                                        [&] { return oracle.run_fused(variant.options, qkv); });
        const auto on_cpu = launching("qkv_write.cpu", run);
        SimulatedMetal metal;
        const auto on_metal = launching("qkv_write.metal", run);
        for (size_t i : {0u, 1u}) {
          EXPECT_LT(largest_difference(expected[i], on_metal[i]),
                    qkv_variants::tolerance_of(dtype));
          EXPECT_LT(largest_difference(on_cpu[i], on_metal[i]), qkv_variants::tolerance_of(dtype));
        }
      }
    }
  }
}

TEST(MetalQkvWrite, QueriesAloneEqualThoseWrittenWithTheirKeys) {
  for (const DType dtype : kDtypes) {
    std::mt19937 random(4);
    const PagedCase c = qkv_variants::case_of(dtype, 64);
    const QkvOptions options{.q_heads = qkv_variants::kQHeads,
                             .q_norm = random_array(random, {64}, mlx_dtype(dtype)),
                             .k_norm = random_array(random, {64}, mlx_dtype(dtype)),
                             .inverse_frequencies = qkv_variants::random_frequencies(random, 32)};
    SimulatedMetal metal;
    PagedFixture fixture(c, KernelPath::kNative, 2);
    const mx::array qkv = qkv_variants::random_rows(random, c, options, fixture.new_rows());
    const auto together = fixture.run_fused(options, qkv);
    const mx::array q =
        mx::contiguous(mx::slice(qkv, {0, 0}, {qkv.shape(0), qkv_variants::kQHeads * 64}));
    const mx::array alone = prepare_queries(q, fixture.layout(), options);
    EXPECT_TRUE(same_bits(floats_of(alone), floats_of(together[0])));
  }
}

// Both take cosines and sines from the same table. Sums over lanes, as of a norm, differ.
TEST(MetalQkvWrite, TheRotationHasTheBitsOfTheCpu) {
  for (const DType dtype : kDtypes) {
    std::mt19937 random(6);
    const PagedCase c = qkv_variants::case_of(dtype, 64);
    const QkvOptions options{.q_heads = qkv_variants::kQHeads,
                             .inverse_frequencies = qkv_variants::random_frequencies(random, 24),
                             .rope_magnitude = 1.1f};
    const mx::array qkv = qkv_variants::random_rows(
        random, c, options, PagedFixture(c, KernelPath::kNative, 2).new_rows());
    const auto queries = [&] {
      return floats_of(PagedFixture(c, KernelPath::kNative, 2).run_fused(options, qkv)[0]);
    };
    const auto on_cpu = launching("qkv_write.cpu", queries);
    SimulatedMetal metal;
    EXPECT_TRUE(same_bits(on_cpu, launching("qkv_write.metal", queries))) << name_of(dtype);
  }
}

TEST(MetalQkvWrite, TheRotationOnAxesHasTheBitsOfTheCpu) {
  for (const DType dtype : kDtypes) {
    std::mt19937 random(7);
    const PagedCase c = qkv_variants::case_of(dtype, 72);
    QkvOptions options = rope_axes::options_of(random, 72, dtype);
    options.q_norm.reset();
    options.k_norm.reset();
    const BatchLayout text = PagedFixture(c, KernelPath::kNative, 2).layout();
    const mx::array qkv = qkv_variants::random_rows(random, c, options, text.tokens());
    const BatchLayout apart = rope_axes::with_random_positions(random, text);
    // A copy of a layout shares its tables; a layer of each must still get its own.
    BatchLayout own = rope_axes::with_own_positions(text);
    own.rotations = apart.rotations;
    for (const BatchLayout& layout : {apart, own, text}) {
      const auto queries = [&] { return floats_of(rope_axes::run(c, options, qkv, layout)[0]); };
      const auto on_cpu = launching("qkv_write.cpu", queries);
      SimulatedMetal metal;
      EXPECT_TRUE(same_bits(on_cpu, launching("qkv_write.metal", queries))) << name_of(dtype);
    }
  }
}

TEST(MetalLatentWrite, TheRotationOnAxesAgreesWithTheCpu) {
  const latent_fixture::LatentShape shape{48, 24, 40, 3};
  std::mt19937 random(8);
  const PagedCase c = latent_fixture::case_of(shape, DType::kFloat32);
  auto in = latent_fixture::inputs_of(shape, DType::kFloat32, 31);
  in.options.rope_axes = rope_axes::numbers_below(random, {12}, rope_axes::kAxes);
  const BatchLayout layout =
      rope_axes::with_random_positions(random, PagedFixture(c, KernelPath::kNative, 2).layout());
  const auto run = [&] { return rope_axes::run_latent(c, in, layout); };
  const auto on_cpu = launching("latent_write.cpu", run);
  SimulatedMetal metal;
  const auto on_metal = launching("latent_write.metal", run);
  for (size_t i : {0u, 1u}) EXPECT_LT(largest_difference(on_cpu[i], on_metal[i]), 2e-5f);
}

TEST(MetalQkvWrite, ARowDoesNotDependOnItsBatch) {
  constexpr int kTokens = 20;
  for (const DType dtype : kDtypes) {
    std::mt19937 random(5);
    PagedCase whole = qkv_variants::case_of(dtype, 72);
    whole.sequences = {{0, kTokens}};
    PagedCase batch = whole;
    batch.sequences = {{0, kTokens}, {0, 7}, {33, 1}};
    for (const Variant& variant : qkv_variants::variants(random, 72, mlx_dtype(dtype))) {
      SCOPED_TRACE(testing::Message() << variant.name << " " << name_of(dtype));
      const mx::array qkv = qkv_variants::random_rows(random, whole, variant.options, kTokens);
      const mx::array others = qkv_variants::random_rows(random, whole, variant.options, 8);
      SimulatedMetal metal;
      const auto alone =
          PagedFixture(whole, KernelPath::kNative, 1).run_fused(variant.options, qkv);
      const auto batched = PagedFixture(batch, KernelPath::kNative, 1)
                               .run_fused(variant.options, mx::concatenate({qkv, others}, 0));
      for (size_t i : {0u, 1u}) {
        auto all = floats_of(batched[i]);
        const auto own = floats_of(alone[i]);
        all.resize(own.size());
        EXPECT_TRUE(same_bits(own, all));
      }
    }
  }
}

TEST(MetalLatentWrite, AgreesWithTheReferenceAndTheCpu) {
  const latent_fixture::LatentShape shape{48, 24, 40, 3};
  for (const DType dtype : kDtypes) {
    SCOPED_TRACE(name_of(dtype));
    const PagedCase c = latent_fixture::case_of(shape, dtype);
    const auto in = latent_fixture::inputs_of(shape, dtype, 31);
    const auto run = [&](KernelPath path) { return latent_fixture::run(c, in, path); };
    const auto expected =
        launching("latent_write.reference", [&] { return run(KernelPath::kReference); });
    const auto on_cpu = launching("latent_write.cpu", [&] { return run(KernelPath::kNative); });
    SimulatedMetal metal;
    const auto on_metal = launching("latent_write.metal", [&] { return run(KernelPath::kNative); });
    const float tolerance = dtype == DType::kFloat32   ? 2e-5f
                            : dtype == DType::kFloat16 ? 1e-2f
                                                       : 6.4e-2f;
    for (size_t i : {0u, 1u}) {
      EXPECT_LT(largest_difference(expected[i], on_metal[i]), tolerance);
      EXPECT_LT(largest_difference(on_cpu[i], on_metal[i]), tolerance);
    }
  }
}

}  // namespace
}  // namespace octavo
