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

// Sixteen groups of 16 with a 4-bit scale and, in the upper nibble, a 4-bit min each. Each half of
// 128 elements has 32 bytes of four 2-bit codes.
struct BlockQ2_K {
  uint8_t scales[kSuperBlock / 16];
  uint8_t quants[kSuperBlock / 4];
  uint16_t scale;
  uint16_t min;
};
// As Q2_K; bit g of byte j of `high_bits` is the third bit of element 32 g + j. `scales` packs a 6-bit
// scale for each group (see signed_scale).
struct BlockQ3_K {
  uint8_t high_bits[kSuperBlock / 8];
  uint8_t quants[kSuperBlock / 4];
  uint8_t scales[12];
  uint16_t scale;
};

// Codes of a table (code_table.h). MXFP4's scale is E8M0.
struct BlockMxfp4 {
  uint8_t scale;
  uint8_t quants[kSmallBlock / 2];
};
struct BlockIQ4_NL {
  uint16_t scale;
  uint8_t quants[kSmallBlock / 2];
};
// Eight groups of 32 with a 6-bit scale each; the quants of a group are those of IQ4_NL.
struct BlockIQ4_XS {
  uint16_t scale;
  uint16_t high_scales;
  uint8_t low_scales[kSuperBlock / 64];
  uint8_t quants[kSuperBlock / 2];
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 &&
              sizeof(BlockQ5_1) == 24 && sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 &&
              sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 && sizeof(BlockQ2_K) == 84 &&
              sizeof(BlockQ3_K) == 110 && sizeof(BlockMxfp4) == 17 && sizeof(BlockIQ4_NL) == 18 &&
              sizeof(BlockIQ4_XS) == 136);

struct ScaleAndMin {
  uint8_t scale;
  uint8_t min;
};
// The 6-bit scale and min of `group` (0..7) of a Q4_K or Q5_K block.
ScaleAndMin scale_and_min(const uint8_t (&scales)[12], int group);
// The scale of a group: -32 .. 31.
int signed_scale(const BlockQ3_K& block, int group);
int signed_scale(const BlockIQ4_XS& block, int group);
// 2^(exponent - 128), half of what E8M0 means, because tables have twice the numbers of E2M1.
float half_power(uint8_t exponent);

// Each reads block_count blocks (at an even address) and writes block_count * 32 or * 256 floats.
void decode_q4_0(const void* blocks, int64_t block_count, float* out);
void decode_q4_1(const void* blocks, int64_t block_count, float* out);
void decode_q5_0(const void* blocks, int64_t block_count, float* out);
void decode_q5_1(const void* blocks, int64_t block_count, float* out);
void decode_q8_0(const void* blocks, int64_t block_count, float* out);
void decode_q4_k(const void* blocks, int64_t block_count, float* out);
void decode_q5_k(const void* blocks, int64_t block_count, float* out);
void decode_q6_k(const void* blocks, int64_t block_count, float* out);
void decode_q2_k(const void* blocks, int64_t block_count, float* out);
void decode_q3_k(const void* blocks, int64_t block_count, float* out);
void decode_mxfp4(const void* blocks, int64_t block_count, float* out);
void decode_iq4_nl(const void* blocks, int64_t block_count, float* out);
void decode_iq4_xs(const void* blocks, int64_t block_count, float* out);

}  // namespace octavo
