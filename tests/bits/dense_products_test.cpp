// Random products with weights that are not quantised have the bits of
// kernels/reference/arithmetic/dense_product.h on every instruction set of this machine.
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "base/half.h"
#include "base/testing/slow_tests.h"
#include "kernels/cpu/isa.h"
#include "kernels/reference/arithmetic/dense_product.h"
#include "kernels/weights/weight.h"
#include "set_products.h"

namespace octavo {
namespace {

enum class Numbers {
  kNormal,
  kManyExponents,
  kSignedZeros,  // most of them
  kTiny,         // products near the smallest normal float
  kDenormal,     // denormals, and factors that would make them normal
  kHuge,         // products near the largest float
  kOpposite,     // sums that cancel
  kSpecial,      // an infinity or a NaN among ordinary numbers
  kAnyBits,
  kCount,
};

float number_of(std::mt19937& random, Numbers kind, DType dtype) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::normal_distribution<float> normal;
  const float number = normal(random);
  const auto choice = static_cast<int>(random() % 64);
  switch (kind) {
    case Numbers::kManyExponents:
      return std::ldexp(number, (choice - 32) / (dtype == DType::kFloat16 ? 4 : 1));
    case Numbers::kSignedZeros:
      return choice < 4 ? number : choice < 34 ? -0.0f : 0.0f;
    case Numbers::kTiny:
      return std::ldexp(number, -58 - choice / 8);
    case Numbers::kDenormal:  // by its bits: this thread may flush denormals to zero
      if (choice >= 32) return std::ldexp(number, choice);
      return std::bit_cast<float>(static_cast<uint32_t>(random()) & 0x807fffffu);
    case Numbers::kHuge:
      return std::ldexp(number, 60 + choice / 16);
    case Numbers::kOpposite:
      return choice < 32 ? 1.5f : -1.5f;
    case Numbers::kSpecial:
      if (choice != 0) return number;
      return random() % 4 == 0 ? std::nanf("") : std::copysign(kInfinity, number);
    case Numbers::kAnyBits:
      return std::bit_cast<float>(static_cast<uint32_t>(random()));
    default:
      return number;
  }
}

// [rows, cols] of `dtype`; each row has numbers of one kind.
std::vector<std::byte> random_numbers(std::mt19937& random, int64_t rows, int64_t cols,
                                      DType dtype) {
  std::vector<float> out;
  for (int64_t row = 0; row < rows; ++row) {
    const auto kind = random() % 2 == 0
                          ? Numbers::kManyExponents
                          : static_cast<Numbers>(random() % static_cast<unsigned>(Numbers::kCount));
    for (int64_t k = 0; k < cols; ++k) out.push_back(number_of(random, kind, dtype));
  }
  if (dtype != DType::kBFloat16) return bytes_as(dtype, out);
  std::vector<uint16_t> bits;  // with denormals
  for (const float value : out) bits.push_back(float_to_bf16(value));
  const auto bytes = std::as_bytes(std::span(bits));
  return {bytes.begin(), bytes.end()};
}

template <typename T>
std::vector<T> as_numbers(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<float> as_floats(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> out;
  for (size_t i = 0; i < bytes.size() / size_of(dtype); ++i)
    out.push_back(number_at(bytes, dtype, i));
  return out;
}

// out[m, n] = dot(row m of x, row n of w).
template <typename T, typename Dot>
std::vector<float> all_dots(const std::vector<T>& x, const std::vector<T>& w, size_t cols,
                            Dot dot) {
  std::vector<float> out;
  for (size_t m = 0; m < x.size(); m += cols)
    for (size_t n = 0; n < w.size(); n += cols)
      out.push_back(dot(std::span(x).subspan(m, cols), std::span(w).subspan(n, cols)));
  return out;
}

struct Types {
  DType x;
  DType weight;
};

std::vector<float> reference_product(std::span<const std::byte> x, std::span<const std::byte> w,
                                     Types types, size_t cols) {
  if (types.x == DType::kBFloat16 && types.weight == DType::kBFloat16)
    return all_dots(as_numbers<uint16_t>(x), as_numbers<uint16_t>(w), cols, arithmetic::dot_bf16);
  return all_dots(as_floats(x, types.x), as_floats(w, types.weight), cols, arithmetic::dot_f32);
}

// 1 to 80 outputs, up to 640 inputs, 1 to 70 rows. Counts results that are numbers and those that
// are not.
struct Counts {
  int64_t compared = 0, finite = 0, other = 0;
};

void compare_random_product(std::mt19937& random, Types types, Counts& counts) {
  const auto up_to = [&](unsigned most) { return 1 + static_cast<int64_t>(random() % most); };
  const int64_t cols = up_to(random() % 4 == 0 ? 64 : 640), outputs = up_to(80);
  const int64_t rows = up_to(random() % 2 == 0 ? 8 : 70);
  const auto w = random_numbers(random, outputs, cols, types.weight);
  const auto x = random_numbers(random, rows, cols, types.x);
  const Weight weight =
      make_weight({.rows = outputs, .cols = cols, .dtype = types.weight, .data = w.data()});
  const std::vector<float> product = reference_product(x, w, types, static_cast<size_t>(cols));
  const auto choice = random() % 4;
  const DType out_dtype = choice == 0   ? DType::kBFloat16
                          : choice == 1 ? DType::kFloat16
                                        : DType::kFloat32;
  const auto expected = bytes_as(out_dtype, product);
  for (const float value : product) ++(std::isfinite(value) ? counts.finite : counts.other);
  for (const cpu::Isa isa : cpu::available_isas()) {
    ++counts.compared;
    const auto actual = product_on(isa, x, types.x, weight.view(), out_dtype);
    const int64_t place = first_difference(actual, expected, out_dtype);
    ASSERT_EQ(place, -1) << cpu::name_of(isa) << ": [" << rows << ", " << cols << "] times ["
                         << outputs << ", " << cols
                         << "]: " << number_at(actual, out_dtype, static_cast<size_t>(place))
                         << ", not " << number_at(expected, out_dtype, static_cast<size_t>(place));
  }
}

int random_cases() { return slow_tests() ? 10'000 : 300; }

void compare_random_products(std::mt19937& random, std::span<const Types> kinds) {
  Counts counts;
  const int cases = random_cases();
  for (int i = 0; i < cases; ++i) {
    const Types types = kinds[static_cast<size_t>(i) % kinds.size()];
    SCOPED_TRACE(testing::Message() << "case " << i << ": " << name_of(types.x) << " rows, "
                                    << name_of(types.weight) << " weights");
    compare_random_product(random, types, counts);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(counts.finite, counts.other);
  EXPECT_GT(counts.other, 0);
  std::printf("%d products, each on %zu instruction sets: %ld comparisons, no bit differs\n", cases,
              cpu::available_isas().size(), static_cast<long>(counts.compared));
}

TEST(BitsAcrossSets, RandomBFloat16ProductsEqualTheReference) {
  std::mt19937 random(20);
  const Types types[] = {{DType::kBFloat16, DType::kBFloat16}};
  compare_random_products(random, types);
}

TEST(BitsAcrossSets, RandomFloatProductsEqualTheReference) {
  std::mt19937 random(21);
  const Types types[] = {{DType::kFloat32, DType::kFloat32},  {DType::kFloat16, DType::kFloat16},
                         {DType::kBFloat16, DType::kFloat32}, {DType::kBFloat16, DType::kFloat16},
                         {DType::kFloat32, DType::kBFloat16}, {DType::kFloat16, DType::kBFloat16}};
  compare_random_products(random, types);
}

}  // namespace
}  // namespace octavo
