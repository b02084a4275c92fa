#include "kv_events/encode_batch.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace octavo::kv_events {
namespace {

using Json = nlohmann::json;

CachePlan full_window_and_state() {
  const SoftmaxSpec full{.kv_heads = 1, .k_dim = 8, .v_dim = 8};
  SoftmaxSpec window = full;
  window.window = 16;
  return plan_cache(
      std::vector<CacheSpec>{full, window, StateSpec{.heads = 1, .k_dim = 4, .v_dim = 4}}, 8);
}

Stored stored(uint64_t hash, std::optional<uint64_t> parent, int group = 0, ExtraKeys extra = {},
              CacheMedium medium = CacheMedium::kMemory) {
  return {{.group = group,
           .hash = hash,
           .parent = parent,
           .tokens = std::vector<TokenId>(8, static_cast<TokenId>(hash % 1000)),
           .extra = std::move(extra)},
          medium};
}

Json decoded(const std::deque<Change>& changes, EventForm form = EventForm::kMap) {
  return Json::from_msgpack(encode_batch(1.5, changes, group_facts(full_window_and_state()), form));
}

TEST(EncodeBatch, WritesTimeEventsAndRank) {
  EXPECT_EQ(decoded({Cleared{}}), Json::parse(R"([1.5, [{"type": "AllBlocksCleared"}], 0])"));
}

TEST(EncodeBatch, JoinsBlocksThatFollowEachOther) {
  const Json events = decoded({stored(1, std::nullopt), stored(~uint64_t{0}, 1), stored(3, 1)})[1];
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0], Json::parse(R"({"type": "BlockStored",
      "block_hashes": [1, 18446744073709551615], "parent_block_hash": null,
      "token_ids": [1,1,1,1,1,1,1,1, 615,615,615,615,615,615,615,615], "block_size": 8,
      "lora_id": null, "medium": "GPU", "lora_name": null, "extra_keys": [null, null],
      "group_idx": 0, "kv_cache_spec_kind": "full_attention"})"));
  EXPECT_EQ(events[1]["parent_block_hash"], 1);
}

TEST(EncodeBatch, NamesGroupsAndMedia) {
  const Json events =
      decoded({stored(1, {}, 0, {}, CacheMedium::kDisk), stored(2, 1, 1), stored(3, {}, 2),
               Removed{1, 2, CacheMedium::kMemory}, Removed{0, 1, CacheMedium::kDisk}})[1];
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[0]["medium"], "STORAGE");
  EXPECT_EQ(events[1]["kv_cache_spec_kind"], "sliding_window");
  EXPECT_EQ(events[1]["kv_cache_spec_sliding_window"], 16);
  EXPECT_EQ(events[2]["kv_cache_spec_kind"], "mamba");
  EXPECT_EQ(events[3], Json::parse(R"({"type": "BlockRemoved", "block_hashes": [2],
      "medium": "GPU", "group_idx": 1})"));
  EXPECT_EQ(events[4]["medium"], "STORAGE");
}

TEST(EncodeBatch, NamesLatentAttention) {
  const SoftmaxSpec latent{
      .kv_heads = 1, .k_dim = 16, .v_dim = 8, .format = KvFormat::kPlain, .values_in_keys = true};
  EXPECT_EQ(group_facts(plan_cache(std::vector<CacheSpec>{latent}, 8))[0].kind, "mla_attention");
}

TEST(EncodeBatch, TagsExtraKeys) {
  const ExtraKeys keys = {adapter_key("sql"), image_key("img", -3), salt_key("x")};
  const std::deque<Change> changes = {stored(1, {}, 0, keys),
                                      stored(2, 1, 0, {adapter_key("sql")})};
  const Json map = decoded(changes)[1][0];
  EXPECT_EQ(map["lora_name"], "sql");
  EXPECT_EQ(map["extra_keys"], Json::parse(R"([[["lora", "sql"], ["img", -3], ["cache_salt", "x"]],
                            [["lora", "sql"]]])"));
  const Json array = decoded(changes, EventForm::kArray)[1][0];
  EXPECT_EQ(array[8], Json::parse(R"([["sql", ["img", -3], "x"], ["sql"]])"));
}

TEST(EncodeBatch, WritesArraysInVllmsOrder) {
  const Json events = decoded({stored(5, 4, 1), Removed{0, 5, CacheMedium::kMemory}, Cleared{}},
                              EventForm::kArray)[1];
  EXPECT_EQ(events, Json::parse(R"([["BlockStored", [5], 4, [5,5,5,5,5,5,5,5], 8, null, "GPU", null,
      [null], 1, "sliding_window", 16], ["BlockRemoved", [5], "GPU", 0], ["AllBlocksCleared"]])"));
}

}  // namespace
}  // namespace octavo::kv_events
