#include "kernels/weights/format_codes.h"

#include <cstring>

#include "base/error.h"
#include "kernels/weights/iq_blocks.h"

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

// Q2_K, and Q3_K with its third bits.
void read_q2_or_q3_k(const WeightView& w, int64_t row, uint8_t* out) {
  const bool three = w.format == WeightFormat::kQ3_K;
  for (int64_t b = 0; b < w.cols / kSuperBlock; ++b) {
    const uint8_t* quants = three ? source_blocks<BlockQ3_K>(w, row)[b].quants
                                  : source_blocks<BlockQ2_K>(w, row)[b].quants;
    for (int k = 0; k < kSuperBlock; ++k) {
      const int half = k / 128, quarter = k % 128 / 32, lane = k % 32;
      int code = (quants[half * 32 + lane] >> (quarter * 2)) & 3;
      if (three)
        code |= ((source_blocks<BlockQ3_K>(w, row)[b].high_bits[lane] >> (k / 32)) & 1) << 2;
      out[b * kSuperBlock + k] = static_cast<uint8_t>(code);
    }
  }
}

void read_mxfp4(const WeightView& w, int64_t row, uint8_t* out) {
  for (int64_t b = 0; b < w.cols / 32; ++b)
    nibbles(source_blocks<BlockMxfp4>(w, row)[b].quants, out + b * 32);
  // The code of negative zero means zero in GGUF.
  for (int64_t i = 0; i < w.cols; ++i) out[i] = out[i] == 8 ? uint8_t{0} : out[i];
}

void read_iq4_xs(const WeightView& w, int64_t row, uint8_t* out) {
  for (int64_t k = 0; k < w.cols; k += 32) {
    const BlockIQ4_XS& block = source_blocks<BlockIQ4_XS>(w, row)[k / kSuperBlock];
    nibbles(block.quants + k % kSuperBlock / 2, out + k);
  }
}

template <typename Block>
void read_iq(const WeightView& w, int64_t row, uint8_t* out) {
  for (int64_t b = 0; b < w.cols / kSuperBlock; ++b)
    read_iq_codes(source_blocks<Block>(w, row)[b], out + b * kSuperBlock);
}

template <typename Block>
SignedScales block_scales(const Block& block, int groups) {
  SignedScales scales{.scale = block.scale, .groups = groups, .of_group = {}};
  for (int g = 0; g < groups; ++g) scales.of_group[g] = static_cast<int8_t>(signed_scale(block, g));
  return scales;
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
      return {4, source.group_size, 0, ScaleKind::kE8M0, CodeTable::kE2M1};
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
    case WeightFormat::kQ2_K:
      return {2, 16, 0, ScaleKind::kSuperNibbles};
    case WeightFormat::kQ3_K:
      return {3, 16, 4, ScaleKind::kSuperSigned};
    case WeightFormat::kMxfp4Gguf:
      return {4, 32, 0, ScaleKind::kE8M0, CodeTable::kE2M1};
    case WeightFormat::kIQ4_NL:
      return {4, 32, 0, ScaleKind::kF16, CodeTable::kIQ4};
    case WeightFormat::kIQ4_XS:
      return {4, 32, 0, ScaleKind::kSuperSigned, CodeTable::kIQ4};
    case WeightFormat::kIQ3_S:
      return {4, 32, 0, ScaleKind::kSuperSigned, CodeTable::kIQ3_S};
    case WeightFormat::kIQ3_XXS:
      return {4, 32, 0, ScaleKind::kSuperSigned, CodeTable::kIQ3_XXS};
    case WeightFormat::kIQ2_S:
    case WeightFormat::kIQ2_XS:
      return {3, 16, 0, ScaleKind::kSuperSigned, CodeTable::kIQ2};
    case WeightFormat::kIQ2_XXS:
      return {3, 32, 0, ScaleKind::kSuperSigned, CodeTable::kIQ2};
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
    case WeightFormat::kQ2_K:
    case WeightFormat::kQ3_K:
      return read_q2_or_q3_k(w, row, out);
    case WeightFormat::kMxfp4Gguf:
      return read_mxfp4(w, row, out);
    case WeightFormat::kIQ4_NL:
      for (int64_t b = 0; b < w.cols / 32; ++b)
        nibbles(source_blocks<BlockIQ4_NL>(w, row)[b].quants, out + b * 32);
      return;
    case WeightFormat::kIQ4_XS:
      return read_iq4_xs(w, row, out);
    case WeightFormat::kIQ3_S:
      return read_iq<BlockIQ3_S>(w, row, out);
    case WeightFormat::kIQ3_XXS:
      return read_iq<BlockIQ3_XXS>(w, row, out);
    case WeightFormat::kIQ2_S:
      return read_iq<BlockIQ2_S>(w, row, out);
    case WeightFormat::kIQ2_XS:
      return read_iq<BlockIQ2_XS>(w, row, out);
    case WeightFormat::kIQ2_XXS:
      return read_iq<BlockIQ2_XXS>(w, row, out);
    case WeightFormat::kDense:
      OCTAVO_CHECK(false);
  }
}

SignedScales signed_scales(const WeightView& w, int64_t row, int64_t block) {
  switch (w.format) {
    case WeightFormat::kQ6_K: {
      const BlockQ6_K& from = source_blocks<BlockQ6_K>(w, row)[block];
      SignedScales scales{.scale = from.scale, .groups = 16, .of_group = {}};
      std::memcpy(scales.of_group, from.scales, sizeof(from.scales));
      return scales;
    }
    case WeightFormat::kQ3_K:
      return block_scales(source_blocks<BlockQ3_K>(w, row)[block], 16);
    case WeightFormat::kIQ4_XS:
      return block_scales(source_blocks<BlockIQ4_XS>(w, row)[block], 8);
    case WeightFormat::kIQ3_S:
      return block_scales(source_blocks<BlockIQ3_S>(w, row)[block], 8);
    case WeightFormat::kIQ3_XXS:
      return block_scales(source_blocks<BlockIQ3_XXS>(w, row)[block], 8);
    case WeightFormat::kIQ2_S:
      return block_scales(source_blocks<BlockIQ2_S>(w, row)[block], 16);
    case WeightFormat::kIQ2_XS:
      return block_scales(source_blocks<BlockIQ2_XS>(w, row)[block], 16);
    default:
      OCTAVO_CHECK(w.format == WeightFormat::kIQ2_XXS);
      return block_scales(source_blocks<BlockIQ2_XXS>(w, row)[block], 8);
  }
}

}  // namespace octavo
