// Options of qkv_write besides the norm of each head: norms over whole rows, values normed or taken
// from the keys, a scale by position, columns before the q heads, and queries without keys.
#include "base/compute_pool.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/qkv_variants.h"

namespace octavo {
namespace {

using namespace qkv_variants;

TEST(QkvOptions, EqualTheReferenceOnEverySet) {
  auto before = launch_counts();
  int64_t runs = 0;
  for (const DType dtype : kDtypes) {
    for (int dim : {64, 72, 256, 512}) {
      std::mt19937 random(3);
      const PagedCase c = case_of(dtype, dim);
      for (const Variant& variant : variants(random, dim, mlx_dtype(dtype))) {
        PagedFixture oracle(c, KernelPath::kReference, 2);
        const mx::array qkv = random_rows(random, c, variant.options, oracle.new_rows());
        const auto expected = oracle.run_fused(variant.options, qkv);
        for (const cpu::Isa isa : cpu::available_isas()) {
          const IsaScope scope(isa);
          SCOPED_TRACE(testing::Message() << variant.name << " " << name_of(dtype) << " " << dim
                                          << " " << cpu::name_of(isa));
          const auto actual =
              PagedFixture(c, KernelPath::kNative, 2).run_fused(variant.options, qkv);
          EXPECT_LT(largest_difference(expected[0], actual[0]), tolerance_of(dtype));
          EXPECT_LT(largest_difference(expected[1], actual[1]), tolerance_of(dtype));
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(launch_counts()["qkv_write.cpu"], before["qkv_write.cpu"] + runs);
}

// One sequence of 20 tokens at once, token by token, and in a batch with others, with one thread
// and two.
TEST(QkvOptions, ARowHasTheSameBitsInEveryBatch) {
  constexpr int kTokens = 20;
  for (const DType dtype : kDtypes) {
    std::mt19937 random(5);
    PagedCase whole = case_of(dtype, 72);
    whole.sequences = {{0, kTokens}};
    for (const Variant& variant : variants(random, 72, mlx_dtype(dtype))) {
      const mx::array qkv = random_rows(random, whole, variant.options, kTokens);
      auto rows = [&](int from, int to) {
        return mx::contiguous(mx::slice(qkv, {from, 0}, {to, qkv.shape(1)}));
      };
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(testing::Message()
                     << variant.name << " " << name_of(dtype) << " " << cpu::name_of(isa));
        const auto expected =
            PagedFixture(whole, KernelPath::kNative, 1).run_fused(variant.options, qkv);
        const auto q = floats_of(expected[0]);
        const auto out = floats_of(expected[1]);

        for (int threads : {1, 2}) {
          compute_pool().limit_threads(threads);
          PagedCase beside = case_of(dtype, 72);
          beside.sequences = {{0, 7}, {0, kTokens}, {33, 1}};
          PagedFixture fixture(beside, KernelPath::kNative, 1);
          const mx::array others = random_rows(random, beside, variant.options, 8);
          const auto mixed = fixture.run_fused(
              variant.options, mx::concatenate({mx::slice(others, {0, 0}, {7, qkv.shape(1)}), qkv,
                                                mx::slice(others, {7, 0}, {8, qkv.shape(1)})},
                                               0));
          auto own = [&](const mx::array& a) {
            return floats_of(mx::slice(a, {7, 0, 0}, {7 + kTokens, kQHeads, 72}));
          };
          EXPECT_TRUE(same_bits(own(mixed[0]), q)) << "with others";
          EXPECT_TRUE(same_bits(own(mixed[1]), out)) << "with others";
        }
        compute_pool().limit_threads(1 << 20);

        PagedFixture stepwise(whole, KernelPath::kNative, 1);
        for (int t = 0; t < kTokens; ++t) {
          const BatchLayout layout{int_array({t}), int_array({0, 1}), int_array({t + 1})};
          const QkvWritten written = qkv_write(stepwise.pages(), rows(t, t + 1), layout,
                                               stepwise.tables(), variant.options);
          stepwise.rebind(written.pages);
          const auto step = floats_of(
              paged_attention(written.q, written.pages, layout, stepwise.tables(), whole.options));
          const auto begin = out.begin() + static_cast<std::ptrdiff_t>(step.size()) * t;
          EXPECT_TRUE(same_bits(step, {begin, begin + static_cast<std::ptrdiff_t>(step.size())}))
              << "token " << t;
        }
      }
    }
  }
}

TEST(PrepareQueries, HasTheBitsOfQkvWriteAndEqualsTheReference) {
  for (const DType dtype : kDtypes) {
    std::mt19937 random(7);
    const PagedCase c = case_of(dtype, 64);
    for (const Variant& variant : variants(random, 64, mlx_dtype(dtype))) {
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        SCOPED_TRACE(testing::Message()
                     << variant.name << " " << name_of(dtype) << " " << cpu::name_of(isa));
        PagedFixture fixture(c, KernelPath::kNative, 2);
        const BatchLayout layout = fixture.layout();
        const mx::array qkv = random_rows(random, c, variant.options, layout.tokens());
        const int first = variant.options.first_column;
        const mx::array q =
            mx::contiguous(mx::slice(qkv, {0, first}, {layout.tokens(), first + kQHeads * 64}));
        auto before = launch_counts();
        const mx::array alone = prepare_queries(q, layout, variant.options);
        EXPECT_TRUE(
            same_bits(floats_of(alone), floats_of(fixture.run_fused(variant.options, qkv)[0])));
        EXPECT_LT(largest_difference(
                      alone, prepare_queries(q, layout, variant.options, KernelPath::kReference)),
                  tolerance_of(dtype));
        auto after = launch_counts();
        for (const char* path : {"prepare_queries.cpu", "prepare_queries.reference"})
          EXPECT_EQ(after[path], before[path] + 1);
      }
    }
  }
}

}  // namespace
}  // namespace octavo
