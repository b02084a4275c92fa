// gguf_blocks.h - the quantized blocks of GGUF files and their plain decoders, the bit-exact
// reference for faster kernels. Element order is the row's own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace octavo {

inline constexpr int kSmallBlock = 32;   // elements of a Q4_0 .. Q8_0 block
inline constexpr int kSuperBlock = 256;  // elements of a K-quant block

// Scales are fp16 bits. In the 32-element kinds byte j of `quants` holds element j in its low and
// element j + 16 in its high nibble; `high_bits` is little-endian, bit j the fifth bit of element
// j.
struct BlockQ4_0 {
  uint16_t scale;
  uint8_t quants[kSmallBlock / 2];
};
struct BlockQ4_1 {
  uint16_t scale;
  uint16_t min;
  uint8_t quants[kSmallBlock / 2];
};
struct BlockQ5_0 {
  uint16_t scale;
  uint8_t high_bits[4];
  uint8_t quants[kSmallBlock / 2];
};
struct BlockQ5_1 {
  uint16_t scale;
  uint16_t min;
  uint8_t high_bits[4];
  uint8_t quants[kSmallBlock / 2];
};
struct BlockQ8_0 {
  uint16_t scale;
  int8_t quants[kSmallBlock];
};

// Eight groups of 32; `scales` packs a 6-bit scale and a 6-bit min for each (see scale_and_min).
// Each run of 32 bytes of `quants` holds one group in the low and the next in the high nibbles.
struct BlockQ4_K {
  uint16_t scale;
  uint16_t min;
  uint8_t scales[12];
  uint8_t quants[kSuperBlock / 2];
};
// As Q4_K; bit g of byte j of `high_bits` is the fifth bit of element j of group g.
struct BlockQ5_K {
  uint16_t scale;
  uint16_t min;
  uint8_t scales[12];
  uint8_t high_bits[kSuperBlock / 8];
  uint8_t quants[kSuperBlock / 2];
};
// Sixteen groups of 16 with an 8-bit scale each. Each half of 128 elements has 64 bytes of low
// nibbles and 32 bytes of four 2-bit high parts.
struct BlockQ6_K {
  uint8_t low_bits[kSuperBlock / 2];
  uint8_t high_bits[kSuperBlock / 4];
  int8_t scales[kSuperBlock / 16];
  uint16_t scale;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);

struct ScaleAndMin {
  uint8_t scale;
  uint8_t min;
};
// The 6-bit scale and min of `group` (0..7) of a Q4_K or Q5_K block.
ScaleAndMin scale_and_min(const uint8_t (&scales)[12], int group);

// Each reads block_count blocks (at an even address) and writes block_count * 32 or * 256 floats.
void decode_q4_0(const void* blocks, int64_t block_count, float* out);
void decode_q4_1(const void* blocks, int64_t block_count, float* out);
void decode_q5_0(const void* blocks, int64_t block_count, float* out);
void decode_q5_1(const void* blocks, int64_t block_count, float* out);
void decode_q8_0(const void* blocks, int64_t block_count, float* out);
void decode_q4_k(const void* blocks, int64_t block_count, float* out);
void decode_q5_k(const void* blocks, int64_t block_count, float* out);
void decode_q6_k(const void* blocks, int64_t block_count, float* out);

}  // namespace octavo
