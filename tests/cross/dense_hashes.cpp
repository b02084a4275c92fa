#include <cmath>
#include <cstdlib>
#include <limits>
#include <span>

#include "kernels/cpu/linear.h"
#include "kernels/reference/arithmetic/dense_product.h"
#include "product_hashes.h"

namespace octavo {
namespace {

constexpr int kKinds = 6;

// Kinds: ordinary numbers; many exponents; signed zeros and denormals; products near the smallest
// normal float; products near the largest one; infinities and NaN.
uint16_t number_of_kind(Random& random, int kind) {
  const float number = random.number();
  const auto choice = static_cast<int>(random.bits() % 64);
  switch (kind) {
    case 1:
      return float_to_bf16(std::ldexp(number, choice - 32));
    case 2:
      if (choice < 24) return 0x8000;
      if (choice < 48) return static_cast<uint16_t>(random.bits() & 0x807fu);
      return float_to_bf16(std::ldexp(number, 60));
    case 3:
      return float_to_bf16(std::ldexp(number, -58 - choice / 8));
    case 4:
      return float_to_bf16(std::ldexp(number, 60 + choice / 16));
    case 5:
      if (choice > 1) return float_to_bf16(number);
      if (choice == 0) return 0xff80;
      return static_cast<uint16_t>(0x7f80 + random.bits() % 2 * 0x40);
    default:
      return float_to_bf16(number);
  }
}

// Each row has numbers of one kind, ordinary ones in half of the rows.
std::vector<uint16_t> random_rows(Random& random, int64_t rows, int64_t cols) {
  std::vector<uint16_t> out;
  for (int64_t row = 0; row < rows; ++row) {
    const bool is_ordinary = random.bits() % 2 == 0;
    const int kind = is_ordinary ? 1 : static_cast<int>(random.bits() % kKinds);
    for (int64_t k = 0; k < cols; ++k) out.push_back(number_of_kind(random, kind));
  }
  return out;
}

// One NaN for all, because sets differ in its bits.
std::vector<std::byte> with_one_nan(std::vector<float> values) {
  for (float& value : values)
    if (std::isnan(value)) value = std::numeric_limits<float>::quiet_NaN();
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> product_of(std::span<const uint16_t> x, std::span<const uint16_t> w,
                              int64_t outputs, int64_t cols) {
  const WeightView source{
      .rows = outputs, .cols = cols, .dtype = DType::kBFloat16, .data = std::as_bytes(w).data()};
  const PackedLayout layout = packed_layout(source);
  std::vector<std::byte> packed(static_cast<size_t>(layout.bytes()));
  pack_weight(source, layout, {}, packed.data());
  const auto rows = static_cast<int64_t>(x.size()) / cols;
  std::vector<float> out(static_cast<size_t>(rows * outputs));
  cpu::LinearArgs args;
  args.x = {.x = x.data(), .dtype = DType::kBFloat16, .rows = rows, .cols = cols};
  args.parts[0].weight = {layout, packed.data()};
  args.part_count = 1;
  args.out = out.data();
  args.out_stride = outputs;
  cpu::linear(args);
  return out;
}

std::vector<float> reference_of(std::span<const uint16_t> x, std::span<const uint16_t> w,
                                size_t cols) {
  std::vector<float> out;
  for (size_t m = 0; m < x.size(); m += cols)
    for (size_t n = 0; n < w.size(); n += cols)
      out.push_back(arithmetic::dot_bf16(x.subspan(m, cols), w.subspan(n, cols)));
  return out;
}

}  // namespace

int hash_dense_products(Random& random) {
  const int cases = std::getenv("OCTAVO_SLOW_TESTS") != nullptr ? 10'000 : 300;
  int different = 0;
  for (int i = 0; i < cases; ++i) {
    const int64_t cols = 1 + random.bits() % 320;
    const int64_t outputs = 1 + random.bits() % 40;
    const int64_t rows = 1 + random.bits() % (i % 4 == 0 ? 70 : 8);
    const auto w = random_rows(random, outputs, cols);
    const auto x = random_rows(random, rows, cols);
    const std::string name = fmt::format("dense {} [{}, {}] rows {}", i, outputs, cols, rows);
    const auto out = with_one_nan(product_of(x, w, outputs, cols));
    print_hash(name, out);
    if (out == with_one_nan(reference_of(x, w, static_cast<size_t>(cols)))) continue;
    fmt::print(stderr, "{}: differs from the reference\n", name);
    ++different;
  }
  return different;
}

}  // namespace octavo
