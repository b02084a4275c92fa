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

// Computed with vLLM's function: SHA-256 of cbor2.dumps((parent, tokens, extra_keys), canonical=True).
TEST(BlockHash, TagsExtraKeysAsVllmDoes) {
  const auto with = [](const ExtraKeys& extra) {
    return hex(hash_block(none_hash(), one_to(16), extra));
  };
  EXPECT_EQ(with({salt_key("x")}),
            "1672abe738b9f699e082625d7a8c5d53e34b174e758d7a1bedcf3f2357cc6a52");
  EXPECT_EQ(with({adapter_key("sql")}),
            "01e905d3fd536c9e9c4cf73428288a30dd1817ba3e5296c2bcba8078e2811066");
  EXPECT_EQ(with({image_key("img", 300)}),
            "cdc8a915e8c3aecc0412151707a4024e107a801b1cc5a1a250352dd1b38a2307");
  EXPECT_EQ(with({adapter_key("sql"), image_key("img", -3), salt_key("x")}),
            "f846c7ba4601258c8312f058b216e799c7e02ea1455287f8569eb555fb108b86");
}

TEST(BlockHash, EveryPartCounts) {
  const BlockHash block = hash_block(none_hash(), one_to(16), {});
  EXPECT_NE(block, hash_block(block, one_to(16), {}));
  EXPECT_NE(block, hash_block(none_hash(), one_to(17), {}));
  EXPECT_NE(block, hash_block(none_hash(), one_to(16), {salt_key("salt")}));
  EXPECT_NE(hash_block(none_hash(), one_to(16), {salt_key("same")}),
            hash_block(none_hash(), one_to(16), {adapter_key("same")}));
  EXPECT_NE(hash_block(none_hash(), one_to(16), {image_key("i", 3)}),
            hash_block(none_hash(), one_to(16), {image_key("i", 4)}));
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
