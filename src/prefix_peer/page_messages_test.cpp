#include "prefix_peer/page_messages.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo {
namespace {

PageKey message_key(uint8_t number, int32_t part) {
  PageKey key{.part = part};
  key.block.fill(number);
  return key;
}

TEST(PageMessages, ListsComeBack) {
  DiskRecord first{.key = message_key(1, 0)};
  DiskRecord second{.key = message_key(255, -2), .parent = message_key(1, 0)};
  const auto links = parse_list_answer(list_answer({first, second}));
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].key, first.key);
  EXPECT_FALSE(links[0].parent);
  EXPECT_EQ(links[1].key, second.key);
  EXPECT_EQ(links[1].parent, second.parent);
}

TEST(PageMessages, RequestsComeBack) {
  const ReadRequest list = parse_request(list_request("f"));
  EXPECT_EQ(list.fingerprint, "f");
  EXPECT_TRUE(list.keys.empty());
  const ReadRequest read = parse_request(read_request("f", {{message_key(7, 3)}}));
  ASSERT_EQ(read.keys.size(), 1u);
  EXPECT_EQ(read.keys[0], message_key(7, 3));
}

TEST(PageMessages, DamagedOnesAreRefused) {
  const std::string hex(64, 'a');
  const std::vector<std::string> damaged = {
      "x",
      "[]",
      "{}",
      R"({"pages": 1})",
      R"({"pages": [[]]})",
      R"({"pages": [[")" + hex + R"(", 1.5, null, 0]]})",
      R"({"pages": [["a", 1, null, 0]]})",
      R"({"pages": [["g)" + hex.substr(1) + R"(", 1, null, 0]]})",
      R"({"pages": [["-1)" + hex.substr(2) + R"(", 1, null, 0]]})",
      R"({"pages": [[")" + hex + R"(", 99999999999, null, 0]]})"};
  for (const std::string& text : damaged) EXPECT_THROW(parse_list_answer(text), SetupError) << text;
  for (const char* text : {"{}", R"({"fingerprint": 1})", R"({"fingerprint": "f", "keys": [1]})"})
    EXPECT_THROW(parse_request(text), SetupError) << text;
}

TEST(PageMessages, ReadsAreBounded) {
  EXPECT_EQ(pages_per_read(1), 64u);
  EXPECT_EQ(pages_per_read(1 << 20), 16u);
  EXPECT_EQ(pages_per_read(1 << 30), 1u);
}

}  // namespace
}  // namespace octavo
