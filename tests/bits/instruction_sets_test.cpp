// Products have the same bits on every instruction set of this machine, with all their options.
#include <cstdio>
#include <cstring>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "kernels/cpu/isa.h"
#include "kernels/head_linear.h"
#include "kernels/linear.h"
#include "kernels/testing/experts.h"
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

TEST(BitsAcrossSets, ProductsOfEveryFormat) {
  const std::vector<cpu::Isa>& sets = cpu::available_isas();
  if (sets.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  constexpr int kCols = 512, kWidth = 37;
  std::mt19937 random(17);
  int cases = 0, formats = 0;
  for (const Weight& weight : every_format(random, kWidth, kCols)) {
    ++formats;
    for (const int rows : {1, 2, 3, 4, 7, 16, 17, 33, 65}) {
      SCOPED_TRACE(testing::Message() << weight.describe() << ", " << rows << " rows");
      const mx::array x = random_array(random, {rows, kCols}, mx::bfloat16);
      LinearOptions wide;
      wide.out_dtype = mx::float32;
      cases += compare_sets(sets, [&] { return linear(x, weight, wide); });
      LinearOptions finished;
      finished.norm = NormSpec{random_array(random, {kCols}), 1e-5f};
      finished.bias = random_array(random, {kWidth});
      finished.residual = random_array(random, {rows, kWidth}, mx::bfloat16);
      finished.scale = 0.22f;
      cases += compare_sets(sets, [&] { return linear(x, weight, finished); });
      LinearOptions capped = wide;
      capped.soft_cap = 3;
      cases += compare_sets(sets, [&] { return linear(x, weight, capped); });
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(formats, 42);
  EXPECT_EQ(cases, 42 * 9 * 3 * (static_cast<int>(sets.size()) - 1));
  std::printf("%d cases on %zu instruction sets\n", cases, sets.size());
}

TEST(BitsAcrossSets, GatedPairsOfEveryFormat) {
  const std::vector<cpu::Isa>& sets = cpu::available_isas();
  if (sets.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  constexpr int kCols = 256, kWidth = 37;
  std::mt19937 random(18);
  const auto gates = every_format(random, kWidth, kCols);
  const auto ups = every_format(random, kWidth, kCols);
  int cases = 0;
  for (size_t i = 0; i < gates.size(); ++i) {
    SCOPED_TRACE(gates[i].describe());
    const Projection gate{gates[i], random_array(random, {kWidth})};
    const Projection up{ups[i], random_array(random, {kWidth})};
    for (const int rows : {1, 5, 33}) {
      const mx::array x = random_array(random, {rows, kCols}, mx::bfloat16);
      for (const auto activation :
           {Activation::kSilu, Activation::kGeluTanh, Activation::kRelu, Activation::kBoundedSilu})
        cases += compare_sets(sets, [&] { return gated_linear(x, gate, up, activation); });
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(cases, 42 * 4 * 3 * (static_cast<int>(sets.size()) - 1));
}

TEST(BitsAcrossSets, ExpertsOfEveryFormat) {
  const std::vector<cpu::Isa>& sets = cpu::available_isas();
  if (sets.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  constexpr ExpertShape kSmall{.experts = 4, .hidden = 256, .inner = 256};
  std::mt19937 random(22);
  int cases = 0;
  for (const RandomExperts& experts : experts_of_every_format(random, kSmall, true)) {
    SCOPED_TRACE(experts.gate[0].describe());
    for (const int tokens : {1, 5, 40}) {
      const Routing routing = random_routing(random, tokens, 2, kSmall.experts);
      const mx::array x = random_array(random, {tokens, kSmall.hidden}, mx::bfloat16);
      ExpertOptions options;
      options.residual = random_array(random, {tokens, kSmall.hidden}, mx::bfloat16);
      cases += compare_sets(sets, [&] { return expert_mlp(x, routing, experts.mlp, options); });
    }
    if (HasFailure()) return;
  }
  EXPECT_EQ(cases, 42 * 3 * (static_cast<int>(sets.size()) - 1));
}

TEST(BitsAcrossSets, ProductsPerHead) {
  const std::vector<cpu::Isa>& sets = cpu::available_isas();
  if (sets.size() < 2) GTEST_SKIP() << "this machine has one instruction set";
  constexpr int kHeads = 3, kOutputs = 48, kCols = 256;
  std::mt19937 random(23);
  for (const Weight& weight : every_format(random, kHeads * kOutputs, kCols)) {
    SCOPED_TRACE(weight.describe());
    for (const int rows : {1, 20}) {
      const mx::array x = random_array(random, {rows, kHeads, kCols}, mx::bfloat16);
      compare_sets(sets, [&] { return head_linear(x, weight); });
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace octavo
