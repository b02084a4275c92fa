#include "kernels/weights/format_codes.h"

#include <cstring>

#include "base/error.h"

namespace octavo {
namespace {

// `count` integers of `bits` bits from a little-endian bit stream.
void read_bit_stream(const uint8_t* packed, int bits, int64_t count, uint8_t* out) {
  const uint32_t mask = (1u << bits) - 1;
  uint32_t held = 0;
  int held_bits = 0;
  for (int64_t i = 0; i < count; ++i) {
    while (held_bits < bits) {
      held |= static_cast<uint32_t>(*packed++) << held_bits;
      held_bits += 8;
    }
    out[i] = static_cast<uint8_t>(held & mask);
    held >>= bits;
    held_bits -= bits;
  }
}

void nibbles(const uint8_t* quants, uint8_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = quants[i] & 15;
    out[i + 16] = quants[i] >> 4;
  }
}

void fifth_bits(const uint8_t (&high)[4], uint8_t* out) {
  uint32_t bits = 0;
  std::memcpy(&bits, high, sizeof(bits));
  for (int i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(out[i] | (((bits >> i) & 1) << 4));
}

void read_q4_or_q5_k(const WeightView& w, int64_t row, uint8_t* out) {
  const bool five = w.format == WeightFormat::kQ5_K;
  for (int64_t b = 0; b < w.cols / kSuperBlock; ++b) {
    const uint8_t* quants = five ? source_blocks<BlockQ5_K>(w, row)[b].quants
                                 : source_blocks<BlockQ4_K>(w, row)[b].quants;
    for (int k = 0; k < kSuperBlock; ++k) {
      const int group = k / 32;
      int code = (quants[group / 2 * 32 + k % 32] >> (group % 2 * 4)) & 15;
      if (five) code |= ((source_blocks<BlockQ5_K>(w, row)[b].high_bits[k % 32] >> group) & 1) << 4;
      out[b * kSuperBlock + k] = static_cast<uint8_t>(code);
    }
  }
}

void read_q6_k(const WeightView& w, int64_t row, uint8_t* out) {
  for (int64_t b = 0; b < w.cols / kSuperBlock; ++b) {
    const BlockQ6_K& block = source_blocks<BlockQ6_K>(w, row)[b];
    for (int k = 0; k < kSuperBlock; ++k) {
      const int half = k / 128, quarter = k % 128 / 32, lane = k % 32;
      const int low = block.low_bits[half * 64 + quarter % 2 * 32 + lane] >> (quarter / 2 * 4);
      const int high = block.high_bits[half * 32 + lane] >> (quarter * 2);
      out[b * kSuperBlock + k] = static_cast<uint8_t>((low & 15) | ((high & 3) << 4));
    }
  }
}

}  // namespace

FormatCodes codes_of(const WeightView& source) {
  switch (source.format) {
    case WeightFormat::kDense:
      return {0, 0, 0, ScaleKind::kNone};
    case WeightFormat::kAffine:
      return {source.bits, source.group_size, 0,
              source.dtype == DType::kFloat32   ? ScaleKind::kPairF32
              : source.dtype == DType::kFloat16 ? ScaleKind::kPairF16
                                                : ScaleKind::kPairBF16};
    case WeightFormat::kMxfp4:
      return {4, source.group_size, 0, ScaleKind::kE8M0};
    case WeightFormat::kQ4_0:
      return {4, 32, 8, ScaleKind::kF16};
    case WeightFormat::kQ4_1:
      return {4, 32, 0, ScaleKind::kPairF16};
    case WeightFormat::kQ5_0:
      return {5, 32, 16, ScaleKind::kF16};
    case WeightFormat::kQ5_1:
      return {5, 32, 0, ScaleKind::kPairF16};
    case WeightFormat::kQ8_0:
      return {8, 32, 128, ScaleKind::kF16};
    case WeightFormat::kQ4_K:
      return {4, 32, 0, ScaleKind::kSuper};
    case WeightFormat::kQ5_K:
      return {5, 32, 0, ScaleKind::kSuper};
    case WeightFormat::kQ6_K:
      return {6, 16, 32, ScaleKind::kSuperSigned};
  }
  OCTAVO_CHECK(false);
  return {};
}

void read_codes(const WeightView& w, int64_t row, uint8_t* out) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(w.data) + row * w.row_bytes();
  switch (w.format) {
    case WeightFormat::kAffine:
    case WeightFormat::kMxfp4:
      return read_bit_stream(bytes, w.format == WeightFormat::kMxfp4 ? 4 : w.bits, w.cols, out);
    case WeightFormat::kQ4_0:
      for (int64_t b = 0; b < w.cols / 32; ++b)
        nibbles(source_blocks<BlockQ4_0>(w, row)[b].quants, out + b * 32);
      return;
    case WeightFormat::kQ4_1:
      for (int64_t b = 0; b < w.cols / 32; ++b)
        nibbles(source_blocks<BlockQ4_1>(w, row)[b].quants, out + b * 32);
      return;
    case WeightFormat::kQ5_0:
      for (int64_t b = 0; b < w.cols / 32; ++b) {
        nibbles(source_blocks<BlockQ5_0>(w, row)[b].quants, out + b * 32);
        fifth_bits(source_blocks<BlockQ5_0>(w, row)[b].high_bits, out + b * 32);
      }
      return;
    case WeightFormat::kQ5_1:
      for (int64_t b = 0; b < w.cols / 32; ++b) {
        nibbles(source_blocks<BlockQ5_1>(w, row)[b].quants, out + b * 32);
        fifth_bits(source_blocks<BlockQ5_1>(w, row)[b].high_bits, out + b * 32);
      }
      return;
    case WeightFormat::kQ8_0:
      for (int64_t b = 0; b < w.cols / 32; ++b)
        for (int i = 0; i < 32; ++i)
          out[b * 32 + i] =
              static_cast<uint8_t>(source_blocks<BlockQ8_0>(w, row)[b].quants[i] + 128);
      return;
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return read_q4_or_q5_k(w, row, out);
    case WeightFormat::kQ6_K:
      return read_q6_k(w, row, out);
    case WeightFormat::kDense:
      OCTAVO_CHECK(false);
  }
}

}  // namespace octavo
