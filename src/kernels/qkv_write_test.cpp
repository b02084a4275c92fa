#include "kernels/qkv_write.h"

#include "kernels/rope.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/paged_fixture.h"

namespace octavo {
namespace {

PagedCase small_case(DType dtype, KvFormat format, int k_dim, int v_dim) {
  return {.sequences = {{0, 9}, {40, 1}, {15, 20}},
          .geometry = {.block_tokens = 16,
                       .kv_heads = 2,
                       .k_dim = k_dim,
                       .v_dim = v_dim,
                       .dtype = dtype,
                       .format = format},
          .q_heads = 4,
          .options = {.scale = 0.1f}};
}

mx::array random_qkv(const PagedCase& c, int rows) {
  std::mt19937 random(9);
  const PageGeometry& g = c.geometry;
  const int width = c.q_heads * g.k_dim + g.kv_heads * (g.k_dim + g.v_dim);
  return random_array(random, {rows, width}, mlx_dtype(g.dtype));
}

float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 2e-5f : dtype == DType::kFloat16 ? 8e-3f : 6.4e-2f;
}

TEST(QkvWrite, EqualsTheReferenceWithAndWithoutNormAndRotation) {
  std::mt19937 random(4);
  auto before = launch_counts();
  int64_t runs = 0;
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
    for (const auto& [k_dim, v_dim] : {std::pair(64, 64), std::pair(72, 40), std::pair(128, 128)}) {
      const PagedCase c = small_case(dtype, KvFormat::kPlain, k_dim, v_dim);
      const mx::array q_norm = random_array(random, {k_dim}, mlx_dtype(dtype));
      const mx::array k_norm = random_array(random, {k_dim}, mlx_dtype(dtype));
      for (int pairs : {0, k_dim / 2, 5}) {
        for (bool normed : {false, true}) {
          SCOPED_TRACE(testing::Message()
                       << name_of(dtype) << " " << k_dim << " " << pairs << " " << normed);
          QkvOptions options{.q_heads = c.q_heads};
          if (normed) {
            options.q_norm = q_norm;
            options.k_norm = k_norm;
          }
          if (pairs > 0) {
            options.inverse_frequencies = mx::exp(mx::negative(random_array(random, {pairs})));
            options.rope_magnitude = 1.1f;
          }
          PagedFixture oracle(c, KernelPath::kReference, 2);
          const mx::array qkv = random_qkv(c, oracle.new_rows());
          const auto expected = oracle.run_fused(options, qkv);
          for (const cpu::Isa isa : cpu::available_isas()) {
            const IsaScope scope(isa);
            SCOPED_TRACE(cpu::name_of(isa));
            const auto actual = PagedFixture(c, KernelPath::kNative, 2).run_fused(options, qkv);
            EXPECT_LT(largest_difference(expected[0], actual[0]), tolerance_of(dtype));
            EXPECT_LT(largest_difference(expected[1], actual[1]), tolerance_of(dtype));
            ++runs;
          }
        }
      }
    }
  }
  EXPECT_EQ(launch_counts()["qkv_write.cpu"], before["qkv_write.cpu"] + runs);
}

// The separate operations use the same kernels, so the bits must be equal.
TEST(QkvWrite, HasTheBitsOfRopeAndKvWrite) {
  for (const KvFormat format : {KvFormat::kPlain, KvFormat::kInt8}) {
    for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
      for (const cpu::Isa isa : cpu::available_isas()) {
        SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
        const IsaScope scope(isa);
        const PagedCase c = small_case(dtype, format, 64, 64);
        const mx::array frequencies = mx::exp(mx::multiply(mx::arange(32), mx::array(-0.2f)));
        PagedFixture fused(c, KernelPath::kNative, 2);
        const mx::array qkv = random_qkv(c, fused.new_rows());
        const QkvOptions options{.q_heads = 4, .inverse_frequencies = frequencies};
        const auto together = fused.run_fused(options, qkv);

        PagedFixture apart(c, KernelPath::kNative, 2);
        const BatchLayout layout = apart.layout();
        auto heads = [&](int first, int count) {
          const mx::array part =
              mx::slice(qkv, {0, first * 64}, {qkv.shape(0), (first + count) * 64});
          return mx::contiguous(mx::reshape(part, {qkv.shape(0), count, 64}));
        };
        const mx::array q = rope(heads(0, 4), layout.positions, frequencies);
        const mx::array k = rope(heads(4, 2), layout.positions, frequencies);
        apart.rebind(kv_write(apart.pages(), k, heads(6, 2), layout, apart.tables()));
        const mx::array out = paged_attention(q, apart.pages(), layout, apart.tables(), c.options);
        EXPECT_TRUE(same_bits(floats_of(q), floats_of(together[0])));
        EXPECT_TRUE(same_bits(floats_of(out), floats_of(together[1])));
      }
    }
  }
}

}  // namespace
}  // namespace octavo
