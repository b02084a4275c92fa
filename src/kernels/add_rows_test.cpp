#include "kernels/add_rows.h"

#include "base/compute_pool.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/support.h"

namespace octavo {
namespace {

// Both round once, at the end: one unit in the last place of numbers up to about 8.
float tolerance_of(mx::Dtype dtype) {
  return dtype == mx::float32 ? 5e-6f : dtype == mx::float16 ? 8e-3f : 6.4e-2f;
}

const std::vector<mx::Dtype> kDtypes = {mx::float32, mx::float16, mx::bfloat16};

std::vector<AddRowsOptions> all_options(std::mt19937& random, int dim) {
  const mx::array weight = random_array(random, {dim});
  const mx::array bias = random_array(random, {dim});
  const NormSpec rms{.weight = weight, .eps = 1e-6f};
  const NormSpec layer{.weight = weight, .eps = 1e-5f, .kind = Norm::kLayer, .bias = bias};
  return {{},
          {.scale = 0.22f},
          {.norm = rms},
          {.norm = rms, .out_scale = 0.70710678f},
          {.norm = layer, .scale = 0.5f, .out_scale = 1.75f}};
}

TEST(AddRows, EqualsTheReferenceOnEverySet) {
  std::mt19937 random(1);
  auto before = launch_counts();
  int64_t runs = 0;
  for (const mx::Dtype dtype : kDtypes) {
    for (int dim : {8, 64, 100, 576}) {
      const mx::array x = random_array(random, {7, dim}, dtype);
      const mx::array y = random_array(random, {7, dim}, dtype);
      for (AddRowsOptions options : all_options(random, dim)) {
        options.path = KernelPath::kReference;
        const mx::array expected = add_rows(x, y, options);
        options.path = KernelPath::kNative;
        for (const cpu::Isa isa : cpu::available_isas()) {
          const IsaScope scope(isa);
          SCOPED_TRACE(testing::Message() << cpu::name_of(isa) << " " << dim);
          EXPECT_LT(largest_difference(expected, add_rows(x, y, options)), tolerance_of(dtype));
          ++runs;
        }
      }
    }
  }
  EXPECT_EQ(launch_counts()["add_rows.cpu"], before["add_rows.cpu"] + runs);
}

TEST(AddRows, ARowHasTheSameBitsInEveryBatch) {
  std::mt19937 random(2);
  constexpr int kRows = 130, kDim = 200;  // more than one piece of work
  for (const mx::Dtype dtype : kDtypes) {
    const mx::array x = random_array(random, {kRows, kDim}, dtype);
    const mx::array y = random_array(random, {kRows, kDim}, dtype);
    for (const AddRowsOptions& options : all_options(random, kDim)) {
      for (const cpu::Isa isa : cpu::available_isas()) {
        const IsaScope scope(isa);
        const auto whole = floats_of(add_rows(x, y, options));
        for (int threads : {1, 2}) {
          compute_pool().limit_threads(threads);
          for (int row : {0, 1, 64, kRows - 1}) {
            const auto alone = floats_of(
                add_rows(mx::contiguous(mx::slice(x, {row, 0}, {row + 1, kDim})),
                         mx::contiguous(mx::slice(y, {row, 0}, {row + 1, kDim})), options));
            const auto begin = whole.begin() + std::ptrdiff_t{row} * kDim;
            EXPECT_TRUE(same_bits(alone, {begin, begin + kDim})) << row;
          }
        }
        compute_pool().limit_threads(1 << 20);
      }
    }
  }
}

TEST(AddRows, Float16SaturatesAndKeepsNaN) {
  const mx::array x = mx::astype(mx::array({60000.0f, -60000.0f, 1.0f}), mx::float16);
  const mx::array y = mx::astype(mx::array({60000.0f, -60000.0f, NAN}), mx::float16);
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    const auto sum = floats_of(add_rows(x, y));
    EXPECT_EQ(sum[0], 65504);
    EXPECT_EQ(sum[1], -65504);
    EXPECT_TRUE(std::isnan(sum[2])) << cpu::name_of(isa);
  }
}

}  // namespace
}  // namespace octavo
