#include "cache/block_hash.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <numeric>

namespace octavo {
namespace {

std::string hex(const BlockHash& hash) {
  std::string text;
  for (uint8_t byte : hash) text += fmt::format("{:02x}", byte);
  return text;
}

std::vector<TokenId> one_to(int last) {
  std::vector<TokenId> tokens(static_cast<size_t>(last));
  std::iota(tokens.begin(), tokens.end(), 1);
  return tokens;
}

TEST(BlockHash, IsVllmsSha256Cbor) {
  EXPECT_EQ(hex(none_hash()), "9bd96a485ad84efdafb72ee48a1d7a69bcead0f8f0433173941b276b9581eef0");
  const BlockHash block = hash_block(none_hash(), one_to(16), {});
  EXPECT_EQ(hex(block), "cd7c51bc5a8fc8643f383a2b9e01522fba7473c669e9270c7b0bf7bf7fd01682");
  EXPECT_EQ(short_hash(block), 8866452693264111234u);
}

TEST(BlockHash, EveryPartCounts) {
  const BlockHash block = hash_block(none_hash(), one_to(16), {});
  EXPECT_NE(block, hash_block(block, one_to(16), {}));
  EXPECT_NE(block, hash_block(none_hash(), one_to(17), {}));
  EXPECT_NE(block, hash_block(none_hash(), one_to(16), {"salt"}));
  EXPECT_NE(hash_block(none_hash(), one_to(16), {"ab", "c"}),
            hash_block(none_hash(), one_to(16), {"a", "bc"}));
}

// Numbers of every CBOR width.
TEST(BlockHash, WideTokenIdsDiffer) {
  std::vector<BlockHash> seen;
  for (TokenId token : {0, 23, 24, 255, 256, 65535, 65536, 151935}) {
    seen.push_back(hash_block(none_hash(), std::vector<TokenId>{token}, {}));
    for (size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_NE(seen[i], seen.back());
  }
}

}  // namespace
}  // namespace octavo
