// Products of bfloat16 rows with quantised weights have the same bits on every instruction set of
// this machine. Other products may round differently (docs/reproducibility.md).
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/linear.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/support.h"
#include "kernels/testing/weights.h"

namespace octavo {
namespace {

std::vector<std::byte> bits_on(cpu::Isa isa, const std::function<mx::array()>& product) {
  const IsaScope scope(isa);
  mx::array y = product();
  y.eval();
  return {y.data<std::byte>(), y.data<std::byte>() + y.nbytes()};
}

// Number of comparisons with the first set; every one must be equal.
int compare_sets(std::span<const cpu::Isa> sets, const std::function<mx::array()>& product) {
  const auto expected = bits_on(sets[0], product);
  for (const cpu::Isa isa : sets.subspan(1)) {
    const auto actual = bits_on(isa, product);
    const bool same = actual.size() == expected.size() &&
                      std::memcmp(actual.data(), expected.data(), actual.size()) == 0;
    EXPECT_TRUE(same) << cpu::name_of(isa) << " differs from " << cpu::name_of(sets[0]);
  }
  return static_cast<int>(sets.size()) - 1;
}

TEST(BitsAcrossSets, QuantisedProducts) {
  const std::vector<cpu::Isa>& sets = cpu::available_isas();
  if (sets.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  constexpr int kCols = 512, kWidth = 37;
  std::mt19937 random(17);
  int cases = 0, formats = 0;
  for (const Weight& weight : every_format(random, kWidth, kCols)) {
    if (weight.layout.bits == 0) continue;
    ++formats;
    for (const int rows : {1, 2, 3, 4, 7, 16, 17, 33, 65}) {
      SCOPED_TRACE(testing::Message() << weight.describe() << ", " << rows << " rows");
      const mx::array x = random_array(random, {rows, kCols}, mx::bfloat16);
      LinearOptions wide;
      wide.out_dtype = mx::float32;
      cases += compare_sets(sets, [&] { return linear(x, weight, wide); });
      LinearOptions finished;
      finished.bias = random_array(random, {kWidth});
      finished.residual = random_array(random, {rows, kWidth}, mx::bfloat16);
      finished.scale = 0.22f;
      cases += compare_sets(sets, [&] { return linear(x, weight, finished); });
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(formats, 29);
  EXPECT_EQ(cases, 29 * 9 * 2 * (static_cast<int>(sets.size()) - 1));
  std::printf("%d cases on %zu instruction sets\n", cases, sets.size());
}

// Activations contain fused multiply-adds, which the portable set rounds twice.
TEST(BitsAcrossSets, GatedPairsOnSetsWithAFusedMultiplyAdd) {
  std::vector<cpu::Isa> sets = cpu::available_isas();
  std::erase(sets, cpu::Isa::kScalar);
  if (sets.size() < 2) GTEST_SKIP() << "fewer than two such sets";
  constexpr int kCols = 256, kWidth = 37;
  std::mt19937 random(18);
  const auto gates = every_format(random, kWidth, kCols);
  const auto ups = every_format(random, kWidth, kCols);
  for (size_t i = 0; i < gates.size(); ++i) {
    if (gates[i].layout.bits == 0) continue;
    SCOPED_TRACE(gates[i].describe());
    const Projection gate{gates[i], std::nullopt}, up{ups[i], std::nullopt};
    for (const int rows : {1, 5, 33}) {
      const mx::array x = random_array(random, {rows, kCols}, mx::bfloat16);
      compare_sets(sets, [&] { return gated_linear(x, gate, up, Activation::kSilu); });
    }
  }
}

}  // namespace
}  // namespace octavo
