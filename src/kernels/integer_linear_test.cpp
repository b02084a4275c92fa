// Products of bfloat16 rows with quantised weights: the bits of integer_reference.h on every
// instruction set, for every format, number of rows and kind of launch.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "base/half.h"
#include "kernels/cpu/linear.h"
#include "kernels/testing/integer_reference.h"
#include "kernels/testing/isa_scope.h"
#include "kernels/testing/quantised_formats.h"
#include "kernels/testing/weight_source.h"
#include "kernels/weights/weight.h"

namespace octavo {
namespace {

constexpr int kOutputs = 37;  // two strips and a part of one
constexpr float kLargestSignificand = 1.9921875f;

using Bf16s = std::vector<uint16_t>;

// Every quantised format, with affine scales in bfloat16 and one number of inputs; or with scales of
// every type and, if that is bfloat16, several numbers of inputs: less than a unit, half a unit at the
// end, whole units, a part of a block of scales.
std::vector<WeightView> quantised_views(bool every_kind) {
  std::vector<WeightView> views;
  for (WeightView view : quantised_formats()) {
    const bool is_other_type =
        view.format == WeightFormat::kAffine && view.dtype != DType::kBFloat16;
    if (is_other_type && !every_kind) continue;
    const int64_t smallest = view.cols;
    std::vector<int64_t> sizes = {1, 2};
    if (smallest == 32) sizes = {5, 1, 6, 10};
    if (smallest == 64) sizes = {3, 5};
    if (smallest == 128) sizes = {2, 3};
    if (is_other_type || !every_kind) sizes.resize(1);
    view.rows = kOutputs;
    for (const int64_t size : sizes) {
      view.cols = size * smallest;
      views.push_back(view);
    }
  }
  return views;
}

std::string describe(const WeightView& view) {
  return packed_layout(view).describe() + " " + std::string(name_of(view.dtype)) + ", " +
         std::to_string(view.cols) + " inputs";
}

// Numbers of many exponents, so that some are exact as integers, some are rounded, some are ties and
// some vanish.
Bf16s spread_numbers(std::mt19937& random, int64_t count) {
  std::normal_distribution<float> normal;
  Bf16s out(static_cast<size_t>(count));
  for (auto& number : out)
    number = float_to_bf16(std::ldexp(normal(random), -static_cast<int>(random() % 14)));
  return out;
}

struct XRows {
  const void* data;
  DType dtype;
  int64_t rows;
  int64_t cols;
};

XRows rows_of(std::span<const uint16_t> x, int64_t cols) {
  return {x.data(), DType::kBFloat16, static_cast<int64_t>(x.size()) / cols, cols};
}

// The products with each weight side by side or, with an activation, of a gated pair. Returns
// [rows, outputs] in float32.
std::vector<float> run(const XRows& x, const std::vector<PackedView>& weights,
                       std::optional<Activation> gated = std::nullopt) {
  cpu::LinearArgs args;
  args.x = {.x = x.data, .dtype = x.dtype, .rows = x.rows, .cols = x.cols};
  for (const PackedView& weight : weights) {
    args.parts[args.part_count++].weight = weight;
    if (!gated || args.part_count == 1) args.out_stride += weight.layout.rows;
  }
  args.is_gated = gated.has_value();
  args.activation = gated.value_or(Activation::kSilu);
  std::vector<float> out(static_cast<size_t>(x.rows * args.out_stride), -1);
  args.out = out.data();
  cpu::linear(args);
  return out;
}

testing::AssertionResult equal_bits(std::span<const float> expected,
                                    std::span<const float> actual) {
  if (expected.size() != actual.size()) return testing::AssertionFailure() << "sizes differ";
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::memcmp(&expected[i], &actual[i], sizeof(float)) != 0)
      return testing::AssertionFailure()
             << "number " << i << " is " << actual[i] << ", not " << expected[i];
  }
  return testing::AssertionSuccess();
}

// A weight, rows for it, and the reference's [rows, outputs].
struct RandomProduct {
  WeightSource source;
  Weight weight;
  Bf16s x;
  std::vector<float> expected;

  RandomProduct(std::mt19937& random, const WeightView& view, int64_t rows)
      : source(random_source(random, view)),
        weight(make_weight(source.view)),
        x(spread_numbers(random, rows * view.cols)),
        expected(integer_reference::product(source.view, x)) {}
};

// Calls check() with every instruction set of this machine.
template <typename Check>
void on_every_set(const Check& check) {
  for (const cpu::Isa isa : cpu::available_isas()) {
    const IsaScope scope(isa);
    SCOPED_TRACE(std::string(cpu::name_of(isa)));
    check();
  }
}

TEST(IntegerLinear, TheArithmeticFollowsFromTheTypes) {
  const WeightView dense_view{.rows = kOutputs, .cols = 256, .dtype = DType::kBFloat16};
  const PackedLayout dense = packed_layout(dense_view);
  for (const WeightView& view : quantised_views(false)) {
    const PackedLayout quantised = packed_layout(view);
    EXPECT_EQ(cpu::arithmetic_of(DType::kBFloat16, {&quantised}), cpu::Arithmetic::kInteger);
    EXPECT_EQ(cpu::arithmetic_of(DType::kFloat16, {&quantised}), cpu::Arithmetic::kFloat32);
    EXPECT_EQ(cpu::arithmetic_of(DType::kFloat32, {&quantised}), cpu::Arithmetic::kFloat32);
    EXPECT_EQ(cpu::arithmetic_of(DType::kBFloat16, {&dense, &quantised}),
              cpu::Arithmetic::kFloat32);
  }
}

// Each number of rows takes the last of the same rows, so a row meets other neighbours and other
// places in its batch each time.
TEST(IntegerLinear, EveryFormatAndNumberOfRowsEqualsTheReferenceOnEverySet) {
  constexpr int64_t kMostRows = 70;
  std::mt19937 random(31);
  for (const WeightView& view : quantised_views(true)) {
    SCOPED_TRACE(describe(view));
    const RandomProduct product(random, view, kMostRows);
    on_every_set([&] {
      for (const int64_t rows : {1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 70}) {
        const auto last = std::span(product.x).last(static_cast<size_t>(rows * view.cols));
        const auto actual = run(rows_of(last, view.cols), {product.weight.view()});
        EXPECT_TRUE(equal_bits(std::span(product.expected).last(actual.size()), actual)) << rows;
      }
    });
    if (HasFailure()) return;
  }
}

// More rows than one pass of the tile unit takes.
TEST(IntegerLinear, ManyRowsEqualTheReference) {
  constexpr int64_t kRows = 530;
  std::mt19937 random(39);
  for (const WeightView& view : quantised_views(false)) {
    SCOPED_TRACE(describe(view));
    const RandomProduct product(random, view, kRows);
    const cpu::Isa best = cpu::available_isas().back();
    const IsaScope scope(best);
    const auto actual = run(rows_of(product.x, view.cols), {product.weight.view()});
    EXPECT_TRUE(equal_bits(product.expected, actual)) << cpu::name_of(best);
    if (HasFailure()) return;
  }
}

// Rows of the largest integers: one sign, both in turn, in pairs, and few large among numbers whose
// low digit is the largest.
Bf16s extreme_rows(int64_t cols) {
  Bf16s out;
  for (const int exponent : {0, -60, 40}) {
    for (int pattern = 0; pattern < 6; ++pattern) {
      for (int64_t k = 0; k < cols; ++k) {
        const float largest = std::ldexp(kLargestSignificand, exponent);
        const float by_pattern[6] = {largest,
                                     -largest,
                                     k % 2 == 0 ? largest : -largest,
                                     k % 4 < 2 ? largest : -largest,
                                     k % 16 == 0 ? largest : std::ldexp(largest, -3),
                                     k % 16 == 0 ? largest : -std::ldexp(largest, -3)};
        out.push_back(float_to_bf16(by_pattern[pattern]));
      }
    }
  }
  return out;
}

TEST(IntegerLinear, TheLargestCodesAndIntegersEqualTheReference) {
  std::mt19937 random(32);
  for (const WeightView& view : quantised_views(false)) {
    WeightSource source = random_source(random, view);
    const Bf16s x = extreme_rows(view.cols);
    for (const bool largest : {true, false}) {
      SCOPED_TRACE(describe(view) + (largest ? ", largest codes" : ", smallest codes"));
      fill_codes(source, largest);
      const Weight weight = make_weight(source.view);
      const auto expected = integer_reference::product(source.view, x);
      on_every_set([&] {
        for (const int64_t rows : {1, 2, 18}) {
          const auto first = std::span(x).first(static_cast<size_t>(rows * view.cols));
          const auto actual = run(rows_of(first, view.cols), {weight.view()});
          EXPECT_TRUE(equal_bits(std::span(expected).first(actual.size()), actual)) << rows;
        }
      });
      if (HasFailure()) return;
    }
  }
}

// 255 * 255 * 2^n is exact in float32, so no reference is needed.
TEST(IntegerLinear, TheLargestSumsAreExact) {
  constexpr int64_t kCols = 128, kGroup = 64, kRows = 17;
  std::mt19937 random(33);
  for (const int bits : {2, 3, 4, 5, 6, 8}) {
    SCOPED_TRACE(bits);
    WeightSource source = random_source(random, {.format = WeightFormat::kAffine,
                                                 .rows = kOutputs,
                                                 .cols = kCols,
                                                 .bits = bits,
                                                 .group_size = kGroup});
    fill_codes(source, true);
    const std::vector<float> ones(kOutputs * kCols / kGroup, 1.0f);
    std::memcpy(source.scales.data(), ones.data(), source.scales.size());
    std::memset(source.biases.data(), 0, source.biases.size());
    const Weight weight = make_weight(source.view);
    for (const float number : {kLargestSignificand, -kLargestSignificand * 1024}) {
      const Bf16s x(kRows * kCols, float_to_bf16(number));
      const float sum = static_cast<float>(kCols * ((1 << bits) - 1)) * number;
      on_every_set([&] {
        for (const int64_t rows : {int64_t{1}, int64_t{3}, kRows}) {
          const auto part = std::span(x).first(static_cast<size_t>(rows * kCols));
          for (const float value : run(rows_of(part, kCols), {weight.view()}))
            ASSERT_EQ(value, sum) << rows;
        }
      });
    }
  }
}

TEST(IntegerLinear, NanAndInfinityStayInTheirRow) {
  constexpr size_t kRows = 17;
  constexpr uint16_t kPoisons[] = {0x7fc0, 0x7f80, 0xff80};  // NaN, both infinities
  std::mt19937 random(34);
  for (const WeightView& view : quantised_views(false)) {
    SCOPED_TRACE(describe(view));
    const RandomProduct clean(random, view, kRows);
    const auto cols = static_cast<size_t>(view.cols);
    for (size_t i = 0; i < 3; ++i) {
      const size_t poisoned = i * (kRows - 1) / 2;
      Bf16s x = clean.x;
      x[poisoned * cols + (i == 0 ? cols - 1 : 7 * i)] = kPoisons[i];
      on_every_set([&] {
        const auto actual = run(rows_of(x, view.cols), {clean.weight.view()});
        for (size_t m = 0; m < kRows; ++m) {
          const auto row = std::span(actual).subspan(m * kOutputs, kOutputs);
          const auto expected = std::span(clean.expected).subspan(m * kOutputs, kOutputs);
          if (m == poisoned) {
            EXPECT_TRUE(std::ranges::all_of(row, [](float v) { return std::isnan(v); })) << m;
          } else {
            EXPECT_TRUE(equal_bits(expected, row)) << m;
          }
        }
      });
    }
    if (HasFailure()) return;
  }
}

TEST(IntegerLinear, ZerosAndTinyNumbersGiveFiniteResults) {
  // The first kVanishing are below half of the smallest step, 2^-110.
  constexpr size_t kVanishing = 5;
  constexpr uint16_t kOne = 0x3f80;
  const uint16_t numbers[] = {0x0000,  // 0
                              0x8000,  // -0
                              0x0001,  // the smallest denormal
                              0x807f,  // the largest, negative
                              float_to_bf16(1e-38f),
                              float_to_bf16(std::ldexp(1.5f, -105)),
                              float_to_bf16(std::ldexp(-1.5f, -99))};
  std::mt19937 random(35);
  for (const WeightView& view : quantised_views(false)) {
    SCOPED_TRACE(describe(view));
    const WeightSource source = random_source(random, view);
    const Weight weight = make_weight(source.view);
    Bf16s x;
    for (const uint16_t number : numbers) x.insert(x.end(), static_cast<size_t>(view.cols), number);
    // Among ordinary numbers.
    for (int64_t k = 0; k < view.cols; ++k) x.push_back(k % 3 == 0 ? kOne : numbers[k % 7]);
    const auto expected = integer_reference::product(source.view, x);
    on_every_set([&] {
      const auto actual = run(rows_of(x, view.cols), {weight.view()});
      EXPECT_TRUE(equal_bits(expected, actual));
      for (size_t i = 0; i < actual.size(); ++i) {
        EXPECT_TRUE(std::isfinite(actual[i])) << i;
        if (i < kVanishing * kOutputs) {
          EXPECT_EQ(actual[i], 0.0f) << i;
        }
      }
    });
    if (HasFailure()) return;
  }
}

TEST(IntegerLinear, GatedPairsEqualTheirProducts) {
  std::mt19937 random(36);
  for (const WeightView& view : quantised_views(false)) {
    SCOPED_TRACE(describe(view));
    const RandomProduct gate(random, view, 33);
    const WeightSource up_source = random_source(random, view);
    const Weight up = make_weight(up_source.view);
    const auto ups = integer_reference::product(up_source.view, gate.x);
    on_every_set([&] {
      for (const auto activation : {Activation::kSilu, Activation::kBoundedSilu}) {
        std::vector<float> expected(ups.size());
        cpu::kernels().gated(gate.expected.data(), ups.data(), expected.data(), DType::kFloat32,
                             activation, static_cast<int64_t>(ups.size()));
        for (const int64_t rows : {1, 2, 5, 33}) {
          const auto first = std::span(gate.x).first(static_cast<size_t>(rows * view.cols));
          const auto actual =
              run(rows_of(first, view.cols), {gate.weight.view(), up.view()}, activation);
          EXPECT_TRUE(equal_bits(std::span(expected).first(actual.size()), actual)) << rows;
        }
      }
    });
    if (HasFailure()) return;
  }
}

// One pass reads both matrices alike, so other pairs are multiplied as float32 rows of the same
// numbers are.
TEST(IntegerLinear, PairsOfDifferentFormatsUseFloat32) {
  std::mt19937 random(37);
  for (const WeightView& view : quantised_views(false)) {
    SCOPED_TRACE(describe(view));
    const Weight quantised = make_weight(random_source(random, view).view);
    const WeightView dense{.rows = kOutputs, .cols = view.cols, .dtype = DType::kBFloat16};
    const WeightView other{.format = WeightFormat::kAffine,
                           .rows = kOutputs,
                           .cols = view.cols,
                           .dtype = DType::kFloat16,
                           .bits = 3,
                           .group_size = 32};
    const Bf16s x = spread_numbers(random, 17 * view.cols);
    std::vector<float> wide;
    for (const uint16_t number : x) wide.push_back(bf16_to_float(number));
    const XRows narrow_rows = rows_of(x, view.cols);
    const XRows wide_rows{wide.data(), DType::kFloat32, narrow_rows.rows, view.cols};
    for (const WeightView& partner_view : {dense, other}) {
      const Weight partner = make_weight(random_source(random, partner_view).view);
      on_every_set([&] {
        for (const auto& pair : {std::vector{quantised.view(), partner.view()},
                                 std::vector{partner.view(), quantised.view()}})
          EXPECT_TRUE(equal_bits(run(wide_rows, pair, Activation::kSilu),
                                 run(narrow_rows, pair, Activation::kSilu)));
      });
    }
    if (HasFailure()) return;
  }
}

TEST(IntegerLinear, JoinedPartsEqualTheirProducts) {
  constexpr int kDenseOutputs = 21;
  std::mt19937 random(38);
  for (const WeightView& view : quantised_views(false)) {
    SCOPED_TRACE(describe(view));
    const RandomProduct quantised(random, view, 17);
    const WeightView dense_view{
        .rows = kDenseOutputs, .cols = view.cols, .dtype = DType::kBFloat16};
    const Weight dense = make_weight(random_source(random, dense_view).view);
    on_every_set([&] {
      for (const size_t rows : {size_t{1}, size_t{17}}) {
        const XRows some =
            rows_of(std::span(quantised.x).first(rows * static_cast<size_t>(view.cols)), view.cols);
        const auto alone = run(some, {dense.view()});
        const auto joined = run(some, {dense.view(), quantised.weight.view()});
        for (size_t m = 0; m < rows; ++m) {
          const auto row = std::span(joined).subspan(m * (kDenseOutputs + kOutputs));
          EXPECT_TRUE(equal_bits(std::span(alone).subspan(m * kDenseOutputs, kDenseOutputs),
                                 row.first(kDenseOutputs)))
              << m;
          EXPECT_TRUE(equal_bits(std::span(quantised.expected).subspan(m * kOutputs, kOutputs),
                                 row.subspan(kDenseOutputs, kOutputs)))
              << m;
        }
      }
    });
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace octavo
