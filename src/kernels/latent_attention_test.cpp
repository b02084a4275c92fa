// Attention over pages whose values are part of their keys.
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/paged_fixture.h"

namespace octavo {
namespace {

struct LatentShape {
  int k_dim;
  int v_dim;
  int q_heads;
};

PagedCase latent_case(const LatentShape& shape, int block_tokens, DType dtype) {
  return {.sequences = {{0, 3}, {300, 1}, {30, 9}, {255, 2}},
          .geometry = {.block_tokens = block_tokens,
                       .kv_heads = 1,
                       .k_dim = shape.k_dim,
                       .v_dim = shape.v_dim,
                       .dtype = dtype,
                       .values_in_keys = true},
          .q_heads = shape.q_heads,
          .options = {.scale = 1 / std::sqrt(static_cast<float>(shape.k_dim))}};
}

// As in paged_attention_test.cpp.
float tolerance_of(DType dtype) {
  return dtype == DType::kFloat32 ? 1e-5f : dtype == DType::kFloat16 ? 2e-3f : 1.6e-2f;
}

// A step over the case's pages; k, v and q depend on the seed only.
mx::array attend(const PagedCase& c, KernelPath path) {
  const PageGeometry& g = c.geometry;
  const mx::Dtype dtype = mlx_dtype(g.dtype);
  int rows = 0;
  for (const auto& s : c.sequences) rows += s.cached + s.rows;
  PagedCase whole = c;
  for (auto& s : whole.sequences) s = {0, s.cached + s.rows};
  PagedFixture fixture(whole, path, 5);
  std::mt19937 random(6);
  const mx::array k = random_array(random, {rows, 1, g.k_dim}, dtype);
  const mx::array v = mx::contiguous(mx::slice(k, {0, 0, 0}, {rows, 1, g.v_dim}));
  const mx::array q = random_array(random, {rows, c.q_heads, g.k_dim}, dtype);
  fixture.rebind(kv_write(fixture.pages(), k, v, fixture.layout(), fixture.tables()));
  mx::array out =
      paged_attention(q, fixture.pages(), fixture.layout(), fixture.tables(), c.options);
  out.eval();
  return out;
}

TEST(LatentAttention, PagesTakeNoBytesForValues) {
  const PageGeometry deepseek = latent_case({576, 512, 16}, 32, DType::kBFloat16).geometry;
  EXPECT_EQ(deepseek.page_bytes(), 32U * 1152U);
  const PageGeometry minicpm = latent_case({288, 256, 40}, 16, DType::kBFloat16).geometry;
  EXPECT_EQ(minicpm.page_bytes(), 16U * 576U);
}

TEST(LatentAttention, EveryShapeTypeAndBlockSizeEqualsTheReference) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const auto& shape :
       {LatentShape{576, 512, 16}, {576, 512, 128}, {288, 256, 40}, {72, 40, 5}, {48, 48, 3}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (int block_tokens : {8, 16, 32, 64}) {
        if (shape.k_dim == 576 && block_tokens != 32) continue;  // the same code, much slower
        const PagedCase c = latent_case(shape, block_tokens, dtype);
        SCOPED_TRACE(testing::Message()
                     << shape.k_dim << "/" << shape.v_dim << " " << shape.q_heads << " heads "
                     << name_of(dtype) << " block " << block_tokens);
        const mx::array expected = PagedFixture(c, KernelPath::kReference, 5).run();
        for (const cpu::Isa isa : cpu::available_isas()) {
          SCOPED_TRACE(cpu::name_of(isa));
          const IsaScope scope(isa);
          const mx::array actual = PagedFixture(c, KernelPath::kNative, 5).run();
          EXPECT_LT(largest_difference(expected, actual), 2 * tolerance_of(dtype));
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(launch_counts()["paged_attention.cpu"], before["paged_attention.cpu"] + runs);
}

// The location of V does not affect the arithmetic: storing it separately gives the same bits.
TEST(LatentAttention, HasTheBitsOfPagesWithSeparateValues) {
  const mx::array sinks({0.5f, -1.0f, 3.0f, 0.0f, 7.5f, -20.0f});
  for (const auto& shape : {LatentShape{288, 256, 6}, {72, 40, 6}, {576, 512, 6}}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16}) {
      for (bool windowed : {false, true}) {
        PagedCase latent = latent_case(shape, 16, dtype);
        if (windowed) {
          latent.options.window = 128;
          latent.options.soft_cap = 5;
          latent.options.sinks = sinks;
        }
        PagedCase twice = latent;
        twice.geometry.values_in_keys = false;
        for (const cpu::Isa isa : cpu::available_isas()) {
          SCOPED_TRACE(testing::Message() << shape.k_dim << " " << name_of(dtype) << " " << windowed
                                          << " " << cpu::name_of(isa));
          const IsaScope scope(isa);
          EXPECT_TRUE(same_bits(floats_of(attend(twice, KernelPath::kNative)),
                                floats_of(attend(latent, KernelPath::kNative))));
        }
      }
    }
  }
}

}  // namespace
}  // namespace octavo
