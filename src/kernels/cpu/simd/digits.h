// digits.h - rows of activations as integers, for exact products with the codes of quantised weights.
//
// Each 64 inputs of a row share a power of two: x = scale * q, rounded to the nearest whole q of 12
// bits, which is exact for numbers within a sixteenth of the largest. q = 16 * high + low, in
// signed bytes, because integer dot products take bytes. The scale depends on the row's own 64
// inputs alone. No MLX.
#pragma once

#include "kernels/cpu/simd/norm.h"

namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE {

inline constexpr int kDigitBits = 10;   // a number of the largest power of two is 2^10 .. 2^11
inline constexpr int kLargestQ = 2040;  // 2^10 times bfloat16's largest significand, 255 / 128
static_assert(kLargestQ <= 16 * 127 + 15);
// Below this exponent numbers are rounded to multiples of 2^-110, so that 1 / scale is finite.
inline constexpr int kSmallestExponent = 127 - 100;

// The factors of one unit, of each row.
struct alignas(64) RowFactors {
  float scale[kRowBlock];  // NaN if an input is infinite or NaN
  // scale * (the sum of q) of all 64 inputs [0], each 32 [1, 2], each 16 [3 .. 6]: exact.
  float sums[7][kRowBlock];
};
// Where the sum of part `part` of `parts` is among the factors.
constexpr int sum_index(int parts, int part) { return parts - 1 + part; }

// Sixty-four inputs of up to 16 rows.
struct alignas(64) DigitUnit {
  int8_t high[kRowBlock][kUnitCols];
  int8_t low[kRowBlock][kUnitCols];  // 0 .. 15
  RowFactors factors;
};

static int64_t digits_bytes(int64_t rows, int64_t cols) {
  const int64_t blocks = (rows + kRowBlock - 1) / kRowBlock;
  return blocks * (prepared_cols(cols) / kUnitCols) * static_cast<int64_t>(sizeof(DigitUnit));
}

OCTAVO_INLINE float power_of_two(int biased_exponent) {
  const auto bits = static_cast<uint32_t>(biased_exponent) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof(power));
  return power;
}

// The powers of two of 64 bfloat16 numbers, from the largest of their magnitudes (as bits: infinity and
// NaN are above all numbers).
struct UnitPower {
  float scale;    // NaN if a number is not finite
  float inverse;  // 0 then
};
OCTAVO_INLINE UnitPower unit_power(int largest_bits) {
  int exponent = largest_bits >> 7;
  if (exponent == 255) return {__builtin_nanf(""), 0};
  if (exponent < kSmallestExponent) exponent = kSmallestExponent;
  return {power_of_two(exponent - kDigitBits), power_of_two(254 - (exponent - kDigitBits))};
}

#ifdef OCTAVO_SIMD_AVX512
OCTAVO_INLINE UnitPower unit_power(const uint16_t* numbers) {
  const __m512i sign_off = _mm512_set1_epi16(0x7fff);
  const __m512i first = _mm512_and_si512(_mm512_loadu_si512(numbers), sign_off);
  const __m512i second = _mm512_and_si512(_mm512_loadu_si512(numbers + 32), sign_off);
  const __m512i half = _mm512_max_epu16(first, second);
  const __m256i quarter =
      _mm256_max_epu16(_mm512_castsi512_si256(half), _mm512_extracti64x4_epi64(half, 1));
  const __m128i eight =
      _mm_max_epu16(_mm256_castsi256_si128(quarter), _mm256_extracti128_si256(quarter, 1));
  // The smallest of the complements is the largest.
  const __m128i least = _mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(-1)));
  return unit_power(0xffff ^ _mm_extract_epi16(least, 0));
}

// The 64 whole numbers q, 16 each. Without meaning if a number is not finite.
OCTAVO_INLINE void rounded_unit(const uint16_t* numbers, const UnitPower& power, __m512i (&q)[4]) {
  for (int part = 0; part < 4; ++part)
    q[part] = _mm512_cvtps_epi32(
        _mm512_mul_ps(reg_load_bf16(numbers + 16 * part), _mm512_set1_ps(power.inverse)));
}

// Writes a row's eight factors, in the order of RowFactors, `stride` numbers apart.
OCTAVO_INLINE void set_factors(const __m512i (&q)[4], const UnitPower& power, float* factors,
                               int64_t stride) {
  // Sums of 16 in four lanes: pairs of vectors are added in halves.
  const __m512i a =
      _mm512_add_epi32(_mm512_unpacklo_epi32(q[0], q[1]), _mm512_unpackhi_epi32(q[0], q[1]));
  const __m512i b =
      _mm512_add_epi32(_mm512_unpacklo_epi32(q[2], q[3]), _mm512_unpackhi_epi32(q[2], q[3]));
  const __m512i four = _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
  const __m256i two =
      _mm256_add_epi32(_mm512_castsi512_si256(four), _mm512_extracti64x4_epi64(four, 1));
  const __m128i sixteens =
      _mm_add_epi32(_mm256_castsi256_si128(two), _mm256_extracti128_si256(two, 1));
  // [scale, 64, 32, 32, 16, 16, 16, 16]
  const __m128i pairs = _mm_hadd_epi32(sixteens, sixteens);
  const __m128i all = _mm_hadd_epi32(pairs, pairs);
  const __m128i front = _mm_blend_epi16(all, _mm_shuffle_epi32(pairs, 0x40), 0xf0);
  const __m256 sums = _mm256_cvtepi32_ps(_mm256_set_m128i(sixteens, front));
  const __m256 scale = _mm256_set1_ps(power.scale);
  const __m256i places = _mm256_mullo_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                                            _mm256_set1_epi32(static_cast<int>(stride)));
  _mm256_i32scatter_ps(factors, places, _mm256_blend_ps(_mm256_mul_ps(sums, scale), scale, 1), 4);
}

// Sets row m of `unit` from 64 bfloat16 numbers.
OCTAVO_INLINE void set_digits(const uint16_t* numbers, DigitUnit& unit, int64_t m) {
  const UnitPower power = unit_power(numbers);
  __m512i q[4];
  rounded_unit(numbers, power, q);
  for (int part = 0; part < 4; ++part) {
    _mm_store_si128(reinterpret_cast<__m128i*>(unit.high[m] + 16 * part),
                    _mm512_cvtepi32_epi8(_mm512_srai_epi32(q[part], 4)));
    _mm_store_si128(reinterpret_cast<__m128i*>(unit.low[m] + 16 * part),
                    _mm512_cvtepi32_epi8(_mm512_and_si512(q[part], _mm512_set1_epi32(15))));
  }
  set_factors(q, power, unit.factors.scale + m, kRowBlock);
}
#else
// Sets row m of `unit` from 64 bfloat16 numbers.
OCTAVO_INLINE void set_digits(const uint16_t* numbers, DigitUnit& unit, int64_t m) {
  int largest = 0;
  for (int i = 0; i < kUnitCols; ++i) {
    const int magnitude = numbers[i] & 0x7fff;
    largest = magnitude > largest ? magnitude : largest;
  }
  const UnitPower power = unit_power(largest);
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
  constexpr int32_t kMagicBits = 0x4b400000;
  alignas(64) int32_t q[kUnitCols];
  for (int i = 0; i < kUnitCols; ++i) {
    const uint32_t bits = uint32_t{numbers[i]} << 16;
    float x;
    std::memcpy(&x, &bits, sizeof(x));
    const float shifted = x * power.inverse + kMagic;
    int32_t whole;
    std::memcpy(&whole, &shifted, sizeof(whole));
    q[i] = whole - kMagicBits;
  }
  for (int i = 0; i < kUnitCols; ++i) {
    unit.high[m][i] = static_cast<int8_t>(q[i] >> 4);
    unit.low[m][i] = static_cast<int8_t>(q[i] & 15);
  }
  uint32_t sums[4] = {};  // unsigned: of inputs that are not finite they may exceed 32 bits
  for (int part = 0; part < 4; ++part) {
    for (int i = 0; i < 16; ++i) sums[part] += static_cast<uint32_t>(q[16 * part + i]);
  }
  unit.factors.scale[m] = power.scale;
  const uint32_t front = sums[0] + sums[1], back = sums[2] + sums[3];
  const uint32_t all[7] = {front + back, front, back, sums[0], sums[1], sums[2], sums[3]};
  for (int i = 0; i < 7; ++i)
    unit.factors.sums[i][m] = static_cast<float>(static_cast<int32_t>(all[i])) * power.scale;
}
#endif

// Calls set(64 numbers, block, unit, row of the block) for rows [row_begin, row_end). A block has as many
// bytes in all forms. Rows past the last one are not written: their results are never read.
template <typename Set>
OCTAVO_INLINE void prepare_units(const RowsJob& job, int64_t row_begin, int64_t row_end,
                                 const Set& set) {
  const int64_t units = prepared_cols(job.cols) / kUnitCols;
  const int64_t block_bytes = units * int64_t{sizeof(DigitUnit)};
  const auto* x = static_cast<const uint16_t*>(job.x);
  for (int64_t row = row_begin; row < row_end; ++row) {
    const RowNorm norm = row_norm(job, row);
    std::byte* block = job.prepared + row / kRowBlock * block_bytes;
    for (int64_t u = 0; u < units; ++u) {
      const int64_t k = u * kUnitCols;
      if (job.norm == Norm::kNone && k + kUnitCols <= job.cols) {
        set(x + job.begin_of(row) + k, block, u, row % kRowBlock);
        continue;
      }
      alignas(64) uint16_t numbers[kUnitCols];
      for (int i = 0; i < kUnitCols; i += kLanes)
        store_bf16(numbers + i, normed16(job, row, norm, k + i));
      set(numbers, block, u, row % kRowBlock);
    }
  }
}

static void prepare_digits(const RowsJob& job, int64_t row_begin, int64_t row_end) {
  prepare_units(
      job, row_begin, row_end,
      [](const uint16_t* numbers, std::byte* block, int64_t u, int64_t m)
          OCTAVO_INLINE_LAMBDA { set_digits(numbers, reinterpret_cast<DigitUnit*>(block)[u], m); });
}

}  // namespace octavo::cpu::OCTAVO_SIMD_NAMESPACE
