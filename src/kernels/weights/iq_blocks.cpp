#include "kernels/weights/iq_blocks.h"

#include <bit>
#include <cstring>

#include "base/half.h"
#include "kernels/weights/code_table.h"
#include "kernels/weights/iq_grids.h"

namespace octavo {
namespace {

uint32_t word_at(const uint8_t* bytes) {
  uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Seven bits of signs and the eighth, which makes their number even.
int eight_signs(uint32_t seven) {
  seven &= 127;
  return static_cast<int>(seven | static_cast<uint32_t>(std::popcount(seven) % 2) << 7);
}

// Eight codes from two entries of a grid of four.
void put_eight_of_four(int first, int second, int signs, uint8_t* out) {
  for (int j = 0; j < 4; ++j) {
    out[j] = static_cast<uint8_t>(((first >> 4 * j) & 7) | ((signs >> j) & 1) << 3);
    out[j + 4] = static_cast<uint8_t>(((second >> 4 * j) & 7) | ((signs >> (j + 4)) & 1) << 3);
  }
}

// Eight codes from an entry of a grid of eight.
void put_eight(int entry, int signs, uint8_t* out) {
  for (int j = 0; j < 8; ++j)
    out[j] = static_cast<uint8_t>(((entry >> 2 * j) & 3) | ((signs >> j) & 1) << 2);
}

// The odd number that nibble `index` stands for.
int odd_scale(const uint8_t* nibbles, int index) {
  return 2 * ((nibbles[index / 2] >> (index % 2 * 4)) & 15) + 1;
}
int odd_scale(uint32_t word) { return 2 * static_cast<int>(word >> 28) + 1; }

template <typename Block>
void decode_iq(const void* blocks, int64_t block_count, CodeTable table, int group_size,
               float* out) {
  const CodeNumbers& numbers = *numbers_of(table);
  uint8_t codes[kSuperBlock];
  for (int64_t b = 0; b < block_count; ++b, out += kSuperBlock) {
    const Block& block = static_cast<const Block*>(blocks)[b];
    read_iq_codes(block, codes);
    for (int i = 0; i < kSuperBlock; ++i) {
      const float scale = half_to_float(block.scale) *
                          static_cast<float>(signed_scale(block, i / group_size)) * numbers.factor;
      out[i] = scale * numbers.number[codes[i]];
    }
  }
}

}  // namespace

void read_iq_codes(const BlockIQ3_S& block, uint8_t* out) {
  const auto entry = [&](int quant) {
    const int high = (block.high_bits[quant / 8] >> (quant % 8)) & 1;
    return kIQ3_SGrid[block.quants[quant] | high << 8];
  };
  for (int eight = 0; eight < kSuperBlock / 8; ++eight)
    put_eight_of_four(entry(2 * eight), entry(2 * eight + 1), block.signs[eight], out + 8 * eight);
}

void read_iq_codes(const BlockIQ3_XXS& block, uint8_t* out) {
  for (int eight = 0; eight < kSuperBlock / 8; ++eight) {
    const uint32_t word = word_at(block.signs_and_scales + eight / 4 * 4);
    put_eight_of_four(kIQ3_XXSGrid[block.quants[2 * eight]],
                      kIQ3_XXSGrid[block.quants[2 * eight + 1]],
                      eight_signs(word >> (eight % 4 * 7)), out + 8 * eight);
  }
}

void read_iq_codes(const BlockIQ2_S& block, uint8_t* out) {
  for (int eight = 0; eight < kSuperBlock / 8; ++eight) {
    const int high = (block.high_bits[eight / 4] >> (eight % 4 * 2)) & 3;
    put_eight(kIQ2_SGrid[block.quants[eight] | high << 8], block.signs[eight], out + 8 * eight);
  }
}

void read_iq_codes(const BlockIQ2_XS& block, uint8_t* out) {
  for (int eight = 0; eight < kSuperBlock / 8; ++eight) {
    const uint32_t quant = block.quants[eight];
    put_eight(kIQ2_XSGrid[quant & 511], eight_signs(quant >> 9), out + 8 * eight);
  }
}

void read_iq_codes(const BlockIQ2_XXS& block, uint8_t* out) {
  for (int eight = 0; eight < kSuperBlock / 8; ++eight) {
    const uint8_t* group = block.groups[eight / 4];
    put_eight(kIQ2_XXSGrid[group[eight % 4]], eight_signs(word_at(group + 4) >> (eight % 4 * 7)),
              out + 8 * eight);
  }
}

int signed_scale(const BlockIQ3_S& block, int group) { return odd_scale(block.scales, group); }
int signed_scale(const BlockIQ3_XXS& block, int group) {
  return odd_scale(word_at(block.signs_and_scales + 4 * group));
}
int signed_scale(const BlockIQ2_S& block, int group) { return odd_scale(block.scales, group); }
int signed_scale(const BlockIQ2_XS& block, int group) { return odd_scale(block.scales, group); }
int signed_scale(const BlockIQ2_XXS& block, int group) {
  return odd_scale(word_at(block.groups[group] + 4));
}

void decode_iq3_s(const void* blocks, int64_t block_count, float* out) {
  decode_iq<BlockIQ3_S>(blocks, block_count, CodeTable::kIQ3_S, 32, out);
}
void decode_iq3_xxs(const void* blocks, int64_t block_count, float* out) {
  decode_iq<BlockIQ3_XXS>(blocks, block_count, CodeTable::kIQ3_XXS, 32, out);
}
void decode_iq2_s(const void* blocks, int64_t block_count, float* out) {
  decode_iq<BlockIQ2_S>(blocks, block_count, CodeTable::kIQ2, 16, out);
}
void decode_iq2_xs(const void* blocks, int64_t block_count, float* out) {
  decode_iq<BlockIQ2_XS>(blocks, block_count, CodeTable::kIQ2, 16, out);
}
void decode_iq2_xxs(const void* blocks, int64_t block_count, float* out) {
  decode_iq<BlockIQ2_XXS>(blocks, block_count, CodeTable::kIQ2, 32, out);
}

}  // namespace octavo
