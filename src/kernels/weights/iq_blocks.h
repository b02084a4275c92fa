// iq_blocks.h - GGUF's blocks of combinations of numbers: IQ2 and IQ3. No MLX.
//
// An index into a grid (iq_grids.h) chooses the magnitudes of four (IQ3) or eight (IQ2) adjacent
// elements; signs are apart, bit j of a byte for element j of eight.
#pragma once

#include <cstdint>

#include "kernels/weights/gguf_blocks.h"

namespace octavo {

// `high_bits`: bit k of byte g is the ninth bit of quant k of group g. Groups of 32; two 4-bit scales
// per byte.
struct BlockIQ3_S {
  uint16_t scale;
  uint8_t quants[kSuperBlock / 4];
  uint8_t high_bits[kSuperBlock / 32];
  uint8_t signs[kSuperBlock / 8];
  uint8_t scales[kSuperBlock / 64];
};
// Per group of 32, a little-endian word: four times 7 bits of signs (the eighth makes their number
// even), and a 4-bit scale.
struct BlockIQ3_XXS {
  uint16_t scale;
  uint8_t quants[kSuperBlock / 4];
  uint8_t signs_and_scales[kSuperBlock / 8];
};
// Groups of 16; two 4-bit scales per byte; two upper bits per quant.
struct BlockIQ2_S {
  uint16_t scale;
  uint8_t quants[kSuperBlock / 8];
  uint8_t signs[kSuperBlock / 8];
  uint8_t high_bits[kSuperBlock / 32];
  uint8_t scales[kSuperBlock / 32];
};
// A quant is an index of 9 bits and 7 bits of signs.
struct BlockIQ2_XS {
  uint16_t scale;
  uint16_t quants[kSuperBlock / 8];
  uint8_t scales[kSuperBlock / 32];
};
// Per group of 32: four indices of 8 bits, and a word as in IQ3_XXS.
struct BlockIQ2_XXS {
  uint16_t scale;
  uint8_t groups[kSuperBlock / 32][8];
};
static_assert(sizeof(BlockIQ3_S) == 110 && sizeof(BlockIQ3_XXS) == 98 && sizeof(BlockIQ2_S) == 82 &&
              sizeof(BlockIQ2_XS) == 74 && sizeof(BlockIQ2_XXS) == 66);

// The 256 codes of a block: an index and, above its 3 (IQ3) or 2 (IQ2) bits, the sign.
void read_iq_codes(const BlockIQ3_S& block, uint8_t* out);
void read_iq_codes(const BlockIQ3_XXS& block, uint8_t* out);
void read_iq_codes(const BlockIQ2_S& block, uint8_t* out);
void read_iq_codes(const BlockIQ2_XS& block, uint8_t* out);
void read_iq_codes(const BlockIQ2_XXS& block, uint8_t* out);

// The scale of a group: 1, 3, .. 31.
int signed_scale(const BlockIQ3_S& block, int group);
int signed_scale(const BlockIQ3_XXS& block, int group);
int signed_scale(const BlockIQ2_S& block, int group);
int signed_scale(const BlockIQ2_XS& block, int group);
int signed_scale(const BlockIQ2_XXS& block, int group);

// As in gguf_blocks.h.
void decode_iq3_s(const void* blocks, int64_t block_count, float* out);
void decode_iq3_xxs(const void* blocks, int64_t block_count, float* out);
void decode_iq2_s(const void* blocks, int64_t block_count, float* out);
void decode_iq2_xs(const void* blocks, int64_t block_count, float* out);
void decode_iq2_xxs(const void* blocks, int64_t block_count, float* out);

}  // namespace octavo
