#include "kernels/latent_write.h"

#include "kernels/head_linear.h"
#include "kernels/norm.h"
#include "kernels/rope.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/latent_fixture.h"

namespace octavo {
namespace {

using namespace latent_fixture;

TEST(LatentWrite, EqualsTheReferenceOnEverySetAndType) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const auto& shape :
       {LatentShape{512, 64, 128, 16}, {256, 32, 64, 10}, {48, 24, 40, 3}, {512, 64, 192, 20}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      const PagedCase c = case_of(shape, dtype);
      const Inputs in = inputs_of(shape, dtype, 31);
      const auto expected = run(c, in, KernelPath::kReference);
      // Numbers up to about 5, each rounded to its type a few times.
      const float tolerance = dtype == DType::kFloat32   ? 2e-5f
                              : dtype == DType::kFloat16 ? 1e-2f
                                                         : 6.4e-2f;
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(testing::Message()
                     << shape.rank << " " << name_of(dtype) << " " << cpu::name_of(isa));
        const auto actual = run(c, in, KernelPath::kNative);
        EXPECT_LT(largest_difference(expected[0], actual[0]), tolerance);
        EXPECT_LT(largest_difference(expected[1], actual[1]), tolerance);
        ++runs;
      }
    }
  }
  EXPECT_EQ(launch_counts()["latent_write.cpu"], before["latent_write.cpu"] + runs);
}

// The separate operations use the same kernels, so the bits must be equal.
TEST(LatentWrite, HasTheBitsOfTheSeparateOperations) {
  const LatentShape shape{256, 32, 64, 10};
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const PagedCase c = case_of(shape, dtype);
    const Inputs in = inputs_of(shape, dtype, 31);
    for (const cpu::Isa isa : cpu::available_isas()) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << cpu::name_of(isa));
      const IsaScope scope(isa);
      const auto fused = run(c, in, KernelPath::kNative);

      PagedFixture apart(c, KernelPath::kNative, 2);
      const BatchLayout layout = apart.layout();
      const auto part = [](const mx::array& x, int first, int last) {
        return mx::contiguous(mx::slice(x, {0, 0, first}, {x.shape(0), x.shape(1), last}));
      };
      const auto rotated = [&](const mx::array& x) {
        return rope(x, layout.positions, in.options.inverse_frequencies, in.options.rope_magnitude);
      };
      const mx::array latent = mx::reshape(in.rows.latent, {31, 1, 288});
      // qkv_write's norm of a head is also the latent's.
      const QkvOptions norm_only{
          .q_heads = 1, .q_norm = in.options.norm, .k_norm = in.options.norm, .norm_eps = 1e-6f};
      PagedCase plain = c;
      plain.geometry.k_dim = plain.geometry.v_dim = 256;
      plain.geometry.values_in_keys = false;
      plain.q_heads = 1;
      PagedFixture norms(plain, KernelPath::kNative, 2);
      const mx::array c_row = mx::reshape(part(latent, 0, 256), {31, 256});
      const mx::array normed =
          norms.run_fused(norm_only, mx::contiguous(mx::concatenate({c_row, c_row, c_row}, 1)))[0];
      const mx::array key =
          mx::contiguous(mx::concatenate({normed, rotated(part(latent, 256, 288))}, -1));
      apart.rebind(kv_write(apart.pages(), key, normed, layout, apart.tables()));
      const mx::array q = mx::contiguous(mx::concatenate(
          {head_linear(part(in.rows.q, 0, 64), in.absorbed), rotated(part(in.rows.q, 64, 96))},
          -1));
      const mx::array out = paged_attention(q, apart.pages(), layout, apart.tables(), c.options);
      EXPECT_TRUE(same_bits(floats_of(q), floats_of(fused[0])));
      EXPECT_TRUE(same_bits(floats_of(out), floats_of(fused[1])));
    }
  }
}

}  // namespace
}  // namespace octavo
