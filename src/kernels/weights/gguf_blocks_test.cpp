#include "kernels/weights/gguf_blocks.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <vector>

#include "kernels/weights/iq_blocks.h"

namespace octavo {
namespace {

constexpr int kBlocks = 64;

using Decode = void (*)(const void* blocks, int64_t block_count, float* out);

struct Kind {
  const char* name;
  Decode decode;
  size_t block_bytes;
  int block_elements;
  std::vector<size_t> half_fields;  // offsets of the fp16 fields in a block
  std::vector<size_t> exponent_fields = {};
};

const Kind kKinds[] = {
    {"Q4_0", decode_q4_0, sizeof(BlockQ4_0), kSmallBlock, {0}},
    {"Q4_1", decode_q4_1, sizeof(BlockQ4_1), kSmallBlock, {0, 2}},
    {"Q5_0", decode_q5_0, sizeof(BlockQ5_0), kSmallBlock, {0}},
    {"Q5_1", decode_q5_1, sizeof(BlockQ5_1), kSmallBlock, {0, 2}},
    {"Q8_0", decode_q8_0, sizeof(BlockQ8_0), kSmallBlock, {0}},
    {"Q4_K", decode_q4_k, sizeof(BlockQ4_K), kSuperBlock, {0, 2}},
    {"Q5_K", decode_q5_k, sizeof(BlockQ5_K), kSuperBlock, {0, 2}},
    {"Q6_K", decode_q6_k, sizeof(BlockQ6_K), kSuperBlock, {208}},
    {"Q2_K", decode_q2_k, sizeof(BlockQ2_K), kSuperBlock, {80, 82}},
    {"Q3_K", decode_q3_k, sizeof(BlockQ3_K), kSuperBlock, {108}},
    {"MXFP4", decode_mxfp4, sizeof(BlockMxfp4), kSmallBlock, {}, {0}},
    {"IQ4_NL", decode_iq4_nl, sizeof(BlockIQ4_NL), kSmallBlock, {0}},
    {"IQ4_XS", decode_iq4_xs, sizeof(BlockIQ4_XS), kSuperBlock, {0}},
    {"IQ3_S", decode_iq3_s, sizeof(BlockIQ3_S), kSuperBlock, {0}},
    {"IQ3_XXS", decode_iq3_xxs, sizeof(BlockIQ3_XXS), kSuperBlock, {0}},
    {"IQ2_S", decode_iq2_s, sizeof(BlockIQ2_S), kSuperBlock, {0}},
    {"IQ2_XS", decode_iq2_xs, sizeof(BlockIQ2_XS), kSuperBlock, {0}},
    {"IQ2_XXS", decode_iq2_xxs, sizeof(BlockIQ2_XXS), kSuperBlock, {0}},
};

struct Expected {
  const char* name;
  uint64_t hash;  // FNV-1a over the bytes of all floats
  float first[3];
};

// From tools/gguf_block_vectors.py: the Python package gguf 0.19.0's decoding of the same blocks.
const Expected kExpected[] = {
    {"Q4_0", 0x1465298a76d7625c, {-0x1.5d2p-5f, -0x1.8fp-6f, 0x1.8fp-6f}},
    {"Q4_1", 0x8e2225ec8f8532a4, {-0x1.aaep-3f, -0x1.91fp-3f, -0x1.f5bp-3f}},
    {"Q5_0", 0x8391ac8e47b4f6ea, {0x1.2b4p-5f, -0x1.8fp-7f, -0x1.2b4p-4f}},
    {"Q5_1", 0x78d10149198699a2, {-0x1.075p-2f, -0x1.0d8cp-2f, -0x1.79p-3f}},
    {"Q8_0", 0x346c26eb3569e683, {-0x1.8be2p-1f, -0x1.d9dp-2f, 0x1.2b4p-4f}},
    {"Q4_K", 0x1c980c4e70dfd836, {0x1.0058p+1f, 0x1.585cp+0f, 0x1.130cp+1f}},
    {"Q5_K", 0x15fdee48573d6c90, {0x1.a32cp+0f, 0x1.b206p+1f, 0x1.6b1p+0f}},
    {"Q6_K", 0x87675cb35a3be50e, {-0x1.060e4p+11f, 0x1.2b7ep+7f, 0x1.22221p+11f}},
    {"Q2_K", 0x6b9b9c43e3e1bf47, {-0x1.09bp-10f, -0x1.55dd8p-5f, -0x1.cd5bp-6f}},
    {"Q3_K", 0x5aa28e72761e523f, {-0x1.b858p-10f, -0x1.259p-11f, 0x1.b858p-10f}},
    {"MXFP4", 0x942be7e5ec2697e1, {-0x1p-1f, 0x1p-4f, 0x1p-2f}},
    {"IQ4_NL", 0xcf31e6ad2bc037fa, {-0x1.443p-1f, -0x1.317cp-2f, 0x1.4a6cp-2f}},
    {"IQ4_XS", 0x906107bd1c0cfd0f, {0x1.317cp+0f, 0x1.953cp+0f, 0x1.8be2p+1f}},
    {"IQ3_S", 0x806d8482877d433a, {-0x1.f5dep-1f, -0x1.1ec8p-3f, 0x1.ae2cp-2f}},
    {"IQ3_XXS", 0x001a0ab9bbdbedb3, {0x1.5eafp+0f, -0x1.2dfa4p+1f, 0x1.10c1p+0f}},
    {"IQ2_S", 0x727fb6ac5e0fd1ec, {-0x1.1ec8p-3f, -0x1.1ec8p-3f, 0x1.1ec8p-3f}},
    {"IQ2_XS", 0x45befb967e211c59, {0x1.f2cp-6f, -0x1.f2cp-6f, 0x1.4f19p-3f}},
    {"IQ2_XXS", 0x154012697b9c0060, {0x1.05d8p-3f, -0x1.05d8p-3f, -0x1.5fda4p-1f}},
};

// The same pseudo-random blocks as the script's, with finite scales and no denormal ones.
std::vector<uint8_t> random_blocks(const Kind& kind) {
  std::vector<uint8_t> bytes(kBlocks * kind.block_bytes);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 1664525u + 1013904223u;
    byte = static_cast<uint8_t>(state >> 24);
  }
  for (size_t block = 0; block < kBlocks; ++block) {
    for (const size_t field : kind.half_fields) bytes[block * kind.block_bytes + field + 1] &= 0xbf;
    for (const size_t field : kind.exponent_fields) bytes[block * kind.block_bytes + field] |= 0x40;
  }
  return bytes;
}

uint64_t hash_of(const std::vector<float>& floats) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : floats) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) {
      hash = (hash ^ ((bits >> shift) & 0xffu)) * 0x100000001b3u;
    }
  }
  return hash;
}

TEST(GgufBlocks, DecodeToTheBitsOfThePythonPackage) {
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    const Kind& kind = kKinds[k];
    SCOPED_TRACE(kind.name);
    ASSERT_STREQ(kind.name, kExpected[k].name);
    std::vector<float> out(static_cast<size_t>(kBlocks * kind.block_elements));
    kind.decode(random_blocks(kind).data(), kBlocks, out.data());
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(out[i], kExpected[k].first[i]);
    EXPECT_EQ(hash_of(out), kExpected[k].hash);
  }
}

TEST(GgufBlocks, MayLieAtAnyEvenAddress) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const std::vector<uint8_t> blocks = random_blocks(kind);
    std::vector<uint8_t> shifted(2);
    shifted.insert(shifted.end(), blocks.begin(), blocks.end());
    std::vector<float> first(static_cast<size_t>(kBlocks * kind.block_elements)),
        second(first.size());
    kind.decode(blocks.data(), kBlocks, first.data());
    kind.decode(shifted.data() + 2, kBlocks, second.data());
    EXPECT_EQ(hash_of(first), hash_of(second));
  }
}

TEST(GgufBlocks, WriteOnlyTheirOwnElements) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    std::vector<float> out(static_cast<size_t>(kind.block_elements) + 1, -7.0f);
    kind.decode(random_blocks(kind).data(), 1, out.data());
    EXPECT_EQ(out.back(), -7.0f);
    kind.decode(nullptr, 0, nullptr);
  }
}

TEST(GgufBlocks, SixBitScalesAndMinsAreUnpacked) {
  // Scales 1..8 and mins 41..48, packed by hand.
  const uint8_t packed[12] = {
      1,    2,    3,    4,   41 | (2 << 6), 42 | (2 << 6), 43 | (2 << 6), 44 | (3 << 6),
      0xd5, 0xe6, 0xf7, 0x08};
  for (int group = 0; group < 8; ++group) {
    EXPECT_EQ(scale_and_min(packed, group).scale, group + 1);
    EXPECT_EQ(scale_and_min(packed, group).min, group + 41);
  }
}

}  // namespace
}  // namespace octavo
