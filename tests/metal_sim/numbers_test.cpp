// Arithmetic in kernels: rounding of half and bfloat, and Metal's functions.
#include <bit>
#include <cmath>
#include <random>

#include "metal_sim/text_kernel.h"

namespace octavo::metal_sim {
namespace {

// Converts 16-bit values to numbers and back (nearest, ties to even) by the definition of the
// formats, not with the compiler's conversions.
struct Format {
  int mantissa_bits;
  int least_exponent;
  uint16_t infinity;

  double value(uint16_t bits) const {
    const int mantissa = bits & ((1 << mantissa_bits) - 1);
    const int exponent = (bits & 0x7FFF) >> mantissa_bits;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if ((bits & infinity) == infinity) return mantissa != 0 ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(mantissa, least_exponent - mantissa_bits);
    return sign * std::ldexp(mantissa + (1 << mantissa_bits),
                             exponent - 1 + least_exponent - mantissa_bits);
  }
  uint16_t nearest(double number) const {
    const uint16_t sign = std::signbit(number) ? 0x8000 : 0;
    if (std::isnan(number)) return infinity | 1;
    number = std::fabs(number);
    if (number == 0) return sign;
    const int exponent = std::isinf(number) ? 1024 : std::max(std::ilogb(number), least_exponent);
    const double scaled =
        std::isinf(number) ? 0 : std::nearbyint(std::ldexp(number, mantissa_bits - exponent));
    const double bits = std::ldexp(exponent - least_exponent, mantissa_bits) + scaled;
    return sign | (exponent >= 1024 || bits >= infinity ? infinity : static_cast<uint16_t>(bits));
  }
  bool same(uint16_t a, uint16_t b) const {
    return a == b || (std::isnan(value(a)) && std::isnan(value(b)));
  }
};
constexpr Format kHalf{10, -14, 0x7C00};
constexpr Format kBfloat{7, -126, 0x7F80};

std::vector<uint16_t> random_bits(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint16_t> bits(count);
  for (auto& value : bits) value = static_cast<uint16_t>(random());
  return bits;
}

// a * b + c, fma, a / b, and a times a float literal, of 16-bit numbers.
void expect_rounding(const std::string& type, const Format& format) {
  constexpr size_t kCount = 65536;
  std::vector<uint16_t> every(kCount);
  for (size_t i = 0; i < kCount; ++i) every[i] = static_cast<uint16_t>(i);
  const auto b = random_bits(kCount, 1);
  const auto c = random_bits(kCount, 2);
  std::vector<uint16_t> out(4 * kCount);
  const std::string fused = type == "half" ? "fma(a[i], b[i], c[i])" : "bfloat(0)";
  TextKernel(
      "[[kernel]] void k(const device TYPE* a [[buffer(0)]], const device TYPE* b [[buffer(1)]],\n"
      "  const device TYPE* c [[buffer(2)]], device TYPE* out [[buffer(3)]], uint i "
      "[[thread_position_in_grid]]) {\n"
      "  out[4 * i] = a[i] * b[i] + c[i]; out[4 * i + 1] = FUSED;\n"
      "  out[4 * i + 2] = a[i] / b[i]; out[4 * i + 3] = TYPE(a[i] * 0.1);\n}\n")
      .define("TYPE", type)
      .define("FUSED", fused)
      .input("a", every)
      .input("b", b)
      .input("c", c)
      .output("out", out)
      .grid({kCount / 256}, {256})
      .run();
  size_t wrong = 0;
  for (size_t i = 0; i < kCount; ++i) {
    const double x = format.value(every[i]);
    const double y = format.value(b[i]);
    const double z = format.value(c[i]);
    const double product = format.value(format.nearest(x * y));
    wrong += !format.same(out[4 * i], format.nearest(product + z));
    if (type == "half")
      wrong += !format.same(
          out[4 * i + 1], format.nearest(static_cast<double>(static_cast<long double>(x) * y + z)));
    wrong += !format.same(out[4 * i + 2], format.nearest(x / y));
    wrong += !format.same(out[4 * i + 3], format.nearest(static_cast<float>(x) * 0.1f));
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(MetalNumbers, HalfRoundsAfterEachOperation) { expect_rounding("half", kHalf); }
TEST(MetalNumbers, BfloatRoundsAfterEachOperation) { expect_rounding("bfloat", kBfloat); }

TEST(MetalNumbers, FloatsRoundToNearestEven) {
  constexpr size_t kCount = 65536;
  std::mt19937 random(3);
  std::vector<float> in(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    in[i] = std::bit_cast<float>(static_cast<uint32_t>(random()));
    // Half way between two values of either format.
    if (i % 2 == 0) in[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(in[i]) & 0xFFFF8000u);
    if (i % 4 == 0)
      in[i] = std::ldexp(static_cast<float>(random() % 4096) + 0.5f,
                         static_cast<int>(random() % 30) - 26);
  }
  std::vector<uint16_t> halves(kCount), bfloats(kCount);
  TextKernel(
      "[[kernel]] void k(const device float* in [[buffer(0)]], device half* halves [[buffer(1)]],\n"
      "  device bfloat* bfloats [[buffer(2)]], uint i [[thread_position_in_grid]]) {\n"
      "  halves[i] = in[i]; bfloats[i] = bfloat(in[i]);\n}")
      .input("in", in)
      .output("halves", halves)
      .output("bfloats", bfloats)
      .grid({kCount / 256}, {256})
      .run();
  size_t wrong = 0;
  for (size_t i = 0; i < kCount; ++i) {
    wrong += !kHalf.same(halves[i], kHalf.nearest(in[i]));
    wrong += !kBfloat.same(bfloats[i], kBfloat.nearest(in[i]));
  }
  EXPECT_EQ(wrong, 0u);
}

TEST(MetalNumbers, Integers) {
  std::vector<uint32_t> out(12);
  const std::vector<uint32_t> in = {0xF0000001u, 0x00ABCDEFu};
  TextKernel(
      "[[kernel]] void k(const device uint* in [[buffer(0)]], device uint* out [[buffer(1)]]) {\n"
      "  const uint a = in[0], b = in[1];\n"
      "  out[0] = mulhi(a, b); out[1] = popcount(a); out[2] = clz(b); out[3] = ctz(a << 4);\n"
      "  const ulong wide = ulong(a) * b + 5ul; out[4] = uint(wide >> 32); out[5] = uint(wide);\n"
      "  out[6] = clamp(a, 3u, 9u); out[7] = select(a, b, a < b); out[8] = as_type<uint>(1.5f);\n"
      "  const uchar4 bytes = *(const device uchar4*)(in + 1); out[9] = bytes.x + bytes.y * 256u;\n"
      "  out[10] = max(min(a, b), 2u); out[11] = as_type<uint>(half2(half(1), half(-2)));\n}")
      .input("in", in)
      .output("out", out)
      .run();
  const uint64_t wide = uint64_t{in[0]} * in[1] + 5;
  const auto high = static_cast<uint32_t>(wide >> 32);
  EXPECT_EQ(out, (std::vector<uint32_t>{static_cast<uint32_t>(uint64_t{in[0]} * in[1] >> 32), 5, 8,
                                        4, high, static_cast<uint32_t>(wide), 9, 0xF0000001u,
                                        0x3FC00000u, 0xCDEF, 0x00ABCDEFu, 0xC0003C00u}));
}

TEST(MetalNumbers, Functions) {
  std::vector<float> out(12);
  TextKernel(
      "[[kernel]] void k(device float* out [[buffer(0)]]) {\n"
      "  const float x = 0.75;\n"
      "  out[0] = precise::exp(x); out[1] = precise::log(x); out[2] = precise::sin(x); out[3] = "
      "precise::cos(x);\n"
      "  out[4] = precise::tanh(x); out[5] = precise::sqrt(x); out[6] = precise::rsqrt(x); out[7] "
      "= precise::pow(x, 3.0f);\n"
      "  out[8] = fma(x, x, -1.0f); out[9] = max(x, NAN); out[10] = select(1.0f, 2.0f, isnan(x)); "
      "out[11] = floor(-x);\n}")
      .output("out", out)
      .run();
  const float x = 0.75f;
  const std::vector<float> expected = {std::exp(x),
                                       std::log(x),
                                       std::sin(x),
                                       std::cos(x),
                                       std::tanh(x),
                                       std::sqrt(x),
                                       1 / std::sqrt(x),
                                       std::pow(x, 3.0f),
                                       std::fma(x, x, -1.0f),
                                       x,
                                       1,
                                       -1};
  for (size_t i = 0; i < out.size(); ++i) EXPECT_FLOAT_EQ(out[i], expected[i]) << i;
}

TEST(MetalNumbers, VectorsAreMadeOfPartsAndConvertedByElement) {
  std::vector<float> out(16);
  const std::vector<uint16_t> halves = {0x3C00, 0xC000, 0x4200, 0x4400};  // 1, -2, 3, 4
  TextKernel(
      "template <typename T> float4 wide(const device T* x) { return float4(*(const device vec<T, "
      "4>*)x); }\n"
      "[[kernel]] void k(const device half* in [[buffer(0)]], device float* out [[buffer(1)]]) {\n"
      "  device float4* rows = (device float4*)out;\n"
      "  rows[0] = wide(in); rows[1] = float4(float2(1, 2), 3, 4).wzyx;\n"
      "  rows[2] = (float4)half4(half(0.5)) + float4(in[0]);\n"
      "  float2 pair(7, 8); rows[3] = fma(float4(pair, pair), float4(2), float4(1));\n}")
      .input("in", halves)
      .output("out", out)
      .run();
  EXPECT_EQ(out, (std::vector<float>{1, -2, 3, 4, 4, 3, 2, 1, 1.5, 1.5, 1.5, 1.5, 15, 17, 15, 17}));
}

}  // namespace
}  // namespace octavo::metal_sim
