#include "kernels/gguf_blocks.h"

#include <cstring>

#include "base/half.h"

namespace octavo {
namespace {

// A copy, so that a block may lie at any address of a mapped file.
template <typename Block>
Block load(const void* blocks, int64_t index) {
  Block block;
  std::memcpy(&block, static_cast<const std::byte*>(blocks) + index * int64_t{sizeof(Block)},
              sizeof(Block));
  return block;
}

// The 4-bit part of element i of a 32-element block.
int nibble(const uint8_t* quants, int i) {
  return i < kSmallBlock / 2 ? quants[i] & 0xf : quants[i - kSmallBlock / 2] >> 4;
}

// The fifth bit of element i, in its place.
int fifth_bit(const uint8_t* high_bits, int i) { return ((high_bits[i / 8] >> (i % 8)) & 1) << 4; }

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

void decode_q4_0(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load<BlockQ4_0>(blocks, b);
    const float scale = half_to_float(block.scale);
    for (int i = 0; i < kSmallBlock; ++i) {
      out[i] = scale * static_cast<float>(nibble(block.quants, i) - 8);
    }
  }
}

void decode_q4_1(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load<BlockQ4_1>(blocks, b);
    const float scale = half_to_float(block.scale);
    const float min = half_to_float(block.min);
    for (int i = 0; i < kSmallBlock; ++i) {
      out[i] = scale * static_cast<float>(nibble(block.quants, i)) + min;
    }
  }
}

void decode_q5_0(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load<BlockQ5_0>(blocks, b);
    const float scale = half_to_float(block.scale);
    for (int i = 0; i < kSmallBlock; ++i) {
      const int quant = nibble(block.quants, i) | fifth_bit(block.high_bits, i);
      out[i] = scale * static_cast<float>(quant - 16);
    }
  }
}

void decode_q5_1(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load<BlockQ5_1>(blocks, b);
    const float scale = half_to_float(block.scale);
    const float min = half_to_float(block.min);
    for (int i = 0; i < kSmallBlock; ++i) {
      const int quant = nibble(block.quants, i) | fifth_bit(block.high_bits, i);
      out[i] = scale * static_cast<float>(quant) + min;
    }
  }
}

void decode_q8_0(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSmallBlock) {
    const auto block = load<BlockQ8_0>(blocks, b);
    const float scale = half_to_float(block.scale);
    for (int i = 0; i < kSmallBlock; ++i) out[i] = scale * static_cast<float>(block.quants[i]);
  }
}

void decode_q4_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load<BlockQ4_K>(blocks, b);
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

void decode_q5_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load<BlockQ5_K>(blocks, b);
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

void decode_q6_k(const void* blocks, int64_t block_count, float* out) {
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const auto block = load<BlockQ6_K>(blocks, b);
    for (int i = 0; i < kSuperBlock; ++i) {
      const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
      // The low nibbles of quarters 0 and 1 lie where the high nibbles of 2 and 3 do.
      const int low = (block.low_bits[half * 64 + i % 64] >> (quarter / 2 * 4)) & 0xf;
      const int high = (block.high_bits[half * 32 + lane] >> (quarter * 2)) & 3;
      const float scale = half_to_float(block.scale) * static_cast<float>(block.scales[i / 16]);
      out[i] = scale * static_cast<float>((low | (high << 4)) - 32);
    }
  }
}

void decode_f16(const void* elements, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = half_to_float(load<uint16_t>(elements, i));
}

void decode_bf16(const void* elements, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(load<uint16_t>(elements, i));
}

}  // namespace octavo
