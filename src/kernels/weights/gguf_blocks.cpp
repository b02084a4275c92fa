#include "kernels/weights/gguf_blocks.h"

#include <bit>
#include <cstring>

#include "base/half.h"
#include "kernels/cpu/clones.h"
#include "kernels/weights/code_table.h"

namespace octavo {
namespace {

template <typename Block>
const Block& at(const void* blocks, int64_t index) {
  return static_cast<const Block*>(blocks)[index];
}

// The 4-bit parts of a 32-element block, in element order. Two plain loops, so that compilers
// vectorise them.
inline void unpack_nibbles(const uint8_t* quants, int (&out)[kSmallBlock]) {
  for (int i = 0; i < kSmallBlock / 2; ++i) out[i] = quants[i] & 0xf;
  for (int i = 0; i < kSmallBlock / 2; ++i) out[i + kSmallBlock / 2] = quants[i] >> 4;
}

// The same with the fifth bits.
inline void unpack_five_bits(const uint8_t* quants, const uint8_t (&high_bits)[4],
                             int (&out)[kSmallBlock]) {
  unpack_nibbles(quants, out);
  uint32_t high = 0;
  std::memcpy(&high, high_bits, sizeof(high));
  for (int i = 0; i < kSmallBlock; ++i) out[i] |= static_cast<int>((high >> i) & 1) << 4;
}

}  // namespace

ScaleAndMin scale_and_min(const uint8_t (&scales)[12], int group) {
  // Bytes 0-3 and 4-7: the scales and mins of groups 0-3, and in their top two bits those of groups
  // 4-7, whose low nibbles share bytes 8-11.
  if (group < 4) {
    return {static_cast<uint8_t>(scales[group] & 63), static_cast<uint8_t>(scales[group + 4] & 63)};
  }
  const int low = scales[group + 4];
  return {static_cast<uint8_t>((low & 0xf) | ((scales[group - 4] >> 6) << 4)),
          static_cast<uint8_t>((low >> 4) | ((scales[group] >> 6) << 4))};
}

int signed_scale(const BlockQ3_K& block, int group) {
  // Bytes 0-7: the low nibbles of groups 0-7 and 8-15; bytes 8-11: the upper two bits of each fourth
  // group.
  const int low = (block.scales[group % 8] >> (group / 8 * 4)) & 15;
  const int high = (block.scales[8 + group % 4] >> (group / 4 * 2)) & 3;
  return (low | (high << 4)) - 32;
}

int signed_scale(const BlockIQ4_XS& block, int group) {
  const int low = (block.low_scales[group / 2] >> (group % 2 * 4)) & 15;
  const int high = (block.high_scales >> (group * 2)) & 3;
  return (low | (high << 4)) - 32;
}

float half_power(uint8_t exponent) {
  return std::bit_cast<float>(exponent < 2 ? 0x00200000u << exponent : (exponent - 1u) << 23);
}

OCTAVO_CLONES
void decode_q4_0(const void* blocks, int64_t block_count, float* out) {
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockQ4_0>(blocks, b);
    const float scale = half_to_float(block.scale);
    unpack_nibbles(block.quants, quants);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * static_cast<float>(quants[i] - 8);
  }
}

OCTAVO_CLONES
void decode_q4_1(const void* blocks, int64_t block_count, float* out) {
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockQ4_1>(blocks, b);
    const float scale = half_to_float(block.scale);
    const float min = half_to_float(block.min);
    unpack_nibbles(block.quants, quants);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * static_cast<float>(quants[i]) + min;
  }
}

OCTAVO_CLONES
void decode_q5_0(const void* blocks, int64_t block_count, float* out) {
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockQ5_0>(blocks, b);
    const float scale = half_to_float(block.scale);
    unpack_five_bits(block.quants, block.high_bits, quants);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * static_cast<float>(quants[i] - 16);
  }
}

OCTAVO_CLONES
void decode_q5_1(const void* blocks, int64_t block_count, float* out) {
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockQ5_1>(blocks, b);
    const float scale = half_to_float(block.scale);
    const float min = half_to_float(block.min);
    unpack_five_bits(block.quants, block.high_bits, quants);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * static_cast<float>(quants[i]) + min;
  }
}

OCTAVO_CLONES
void decode_q8_0(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockQ8_0>(blocks, b);
    const float scale = half_to_float(block.scale);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * static_cast<float>(block.quants[i]);
  }
}

OCTAVO_CLONES
void decode_q4_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto& block = at<BlockQ4_K>(blocks, b);
    for (int group = 0; group < 8; ++group) {
      const ScaleAndMin packed = scale_and_min(block.scales, group);
      const float scale = half_to_float(block.scale) * static_cast<float>(packed.scale);
      const float min = half_to_float(block.min) * static_cast<float>(packed.min);
      for (int i = 0; i < 32; ++i) {
        const int quant = (block.quants[group / 2 * 32 + i] >> (group % 2 * 4)) & 0xf;
        out[group * 32 + i] = scale * static_cast<float>(quant) - min;
      }
    }
  }
}

OCTAVO_CLONES
void decode_q5_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto& block = at<BlockQ5_K>(blocks, b);
    for (int group = 0; group < 8; ++group) {
      const ScaleAndMin packed = scale_and_min(block.scales, group);
      const float scale = half_to_float(block.scale) * static_cast<float>(packed.scale);
      const float min = half_to_float(block.min) * static_cast<float>(packed.min);
      for (int i = 0; i < 32; ++i) {
        const int low = (block.quants[group / 2 * 32 + i] >> (group % 2 * 4)) & 0xf;
        const int high = (block.high_bits[i] >> group) & 1;
        out[group * 32 + i] = scale * static_cast<float>(low | (high << 4)) - min;
      }
    }
  }
}

OCTAVO_CLONES
void decode_q6_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto& block = at<BlockQ6_K>(blocks, b);
    const float block_scale = half_to_float(block.scale);
    for (int group = 0; group < 16; ++group) {
      const int half = group / 8, quarter = group % 8 / 2, lane = group % 2 * 16;
      // The low nibbles of quarters 0 and 1 lie where the high nibbles of 2 and 3 do.
      const uint8_t* low = block.low_bits + half * 64 + quarter % 2 * 32 + lane;
      const uint8_t* high = block.high_bits + half * 32 + lane;
      const float scale = block_scale * static_cast<float>(block.scales[group]);
      for (int i = 0; i < 16; ++i) {
        const int quant =
            ((low[i] >> (quarter / 2 * 4)) & 0xf) | (((high[i] >> (quarter * 2)) & 3) << 4);
        out[group * 16 + i] = scale * static_cast<float>(quant - 32);
      }
    }
  }
}

OCTAVO_CLONES
void decode_q2_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto& block = at<BlockQ2_K>(blocks, b);
    for (int group = 0; group < 16; ++group) {
      const float scale = half_to_float(block.scale) * static_cast<float>(block.scales[group] & 15);
      const float min = half_to_float(block.min) * static_cast<float>(block.scales[group] >> 4);
      const uint8_t* quants = block.quants + group / 8 * 32 + group % 2 * 16;
      for (int i = 0; i < 16; ++i) {
        const int quant = (quants[i] >> (group % 8 / 2 * 2)) & 3;
        out[group * 16 + i] = scale * static_cast<float>(quant) - min;
      }
    }
  }
}

OCTAVO_CLONES
void decode_q3_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto& block = at<BlockQ3_K>(blocks, b);
    for (int group = 0; group < 16; ++group) {
      const float scale =
          half_to_float(block.scale) * static_cast<float>(signed_scale(block, group));
      const uint8_t* low = block.quants + group / 8 * 32 + group % 2 * 16;
      const uint8_t* high = block.high_bits + group % 2 * 16;
      for (int i = 0; i < 16; ++i) {
        const int quant =
            ((low[i] >> (group % 8 / 2 * 2)) & 3) | (((high[i] >> (group / 2)) & 1) << 2);
        out[group * 16 + i] = scale * static_cast<float>(quant - 4);
      }
    }
  }
}

OCTAVO_CLONES
void decode_mxfp4(const void* blocks, int64_t block_count, float* out) {
  // Both zeros are positive here.
  static constexpr float kNumbers[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockMxfp4>(blocks, b);
    const float scale = half_power(block.scale);
    unpack_nibbles(block.quants, quants);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * kNumbers[quants[i]];
  }
}

OCTAVO_CLONES
void decode_iq4_nl(const void* blocks, int64_t block_count, float* out) {
  const float* numbers = numbers_of(CodeTable::kIQ4)->number;
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto& block = at<BlockIQ4_NL>(blocks, b);
    const float scale = half_to_float(block.scale);
    unpack_nibbles(block.quants, quants);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * numbers[quants[i]];
  }
}

OCTAVO_CLONES
void decode_iq4_xs(const void* blocks, int64_t block_count, float* out) {
  const float* numbers = numbers_of(CodeTable::kIQ4)->number;
  int quants[kSmallBlock];
  for (int64_t b = 0; b < block_count; ++b) {
    const auto& block = at<BlockIQ4_XS>(blocks, b);
    for (int group = 0; group < 8; ++group, out += kSmallBlock) {
      const float scale =
          half_to_float(block.scale) * static_cast<float>(signed_scale(block, group));
      unpack_nibbles(block.quants + group * 16, quants);
      for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * numbers[quants[i]];
    }
  }
}

}  // namespace octavo
