#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/error.h"
#include "bench/load/id_requests.h"
#include "bench/load/sharegpt.h"

namespace octavo::bench {
namespace {

using testing::ElementsAre;

const std::vector<TokenId>& ids_of(const LoadRequest& request) {
  return std::get<std::vector<TokenId>>(request.prompt);
}

TEST(RandomIdRequests, HaveTheRequestedLengthsAndIdsInRange) {
  const std::vector<MixRequest> lengths = {{.prompt_tokens = 300, .output_tokens = 7},
                                           {.prompt_tokens = 1, .output_tokens = 2}};
  const auto requests = random_id_requests(lengths, {.first = 100, .end = 110}, 5);
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_EQ(ids_of(requests[0]).size(), 300u);
  EXPECT_EQ(requests[0].prompt_tokens, 300);
  EXPECT_EQ(requests[0].max_tokens, 7);
  EXPECT_EQ(ids_of(requests[1]).size(), 1u);
  const auto [least, most] = std::ranges::minmax(ids_of(requests[0]));
  EXPECT_EQ(least, 100);
  EXPECT_EQ(most, 109);
}

TEST(RandomIdRequests, DependOnlyOnTheSeed) {
  const std::vector<MixRequest> lengths(2, {.prompt_tokens = 20, .output_tokens = 1});
  const auto first = random_id_requests(lengths, {}, 1);
  EXPECT_EQ(ids_of(first[0]), ids_of(random_id_requests(lengths, {}, 1)[0]));
  EXPECT_NE(ids_of(first[0]), ids_of(random_id_requests(lengths, {}, 2)[0]));
  EXPECT_NE(ids_of(first[0]), ids_of(first[1]));
}

TEST(SharedPrefixRequests, ShareThePrefixOfTheirGroupAndNothingElse) {
  const auto requests = shared_prefix_requests(
      {.requests = 6, .groups = 2, .prefix_tokens = 30, .suffix_tokens = 10, .output_tokens = 4},
      {}, 9);
  ASSERT_EQ(requests.size(), 6u);
  std::set<std::vector<TokenId>> prefixes, suffixes;
  for (const LoadRequest& request : requests) {
    const auto& ids = ids_of(request);
    ASSERT_EQ(ids.size(), 40u);
    prefixes.emplace(ids.begin(), ids.begin() + 30);
    suffixes.emplace(ids.begin() + 30, ids.end());
  }
  EXPECT_EQ(prefixes.size(), 2u);
  EXPECT_EQ(suffixes.size(), 6u);
  EXPECT_TRUE(std::equal(ids_of(requests[0]).begin(), ids_of(requests[0]).begin() + 30,
                         ids_of(requests[2]).begin()));
}

class ShareGptFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() / (std::string("octavo_") + test->name());
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::vector<Conversation> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_sharegpt(path_);
  }

  std::filesystem::path path_;
};

TEST_F(ShareGptFile, GivesTheFirstTwoTurns) {
  const auto read_back = read(R"([
    {"id": "a", "conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "r"},
      {"from": "human", "value": "x"}, {"from": "gpt", "value": "y"}]},
    {"id": "b", "conversations": [{"from": "gpt", "value": "g"}, {"from": "human", "value": "h"}]},
    {"id": "c", "conversations": []},
    {"id": "d", "conversations": [{"from": "human", "value": "alone"}]},
    {"id": "e"}
  ])");
  ASSERT_EQ(read_back.size(), 2u);
  EXPECT_EQ(read_back[0].prompt, "q");
  EXPECT_EQ(read_back[0].answer, "r");
  EXPECT_EQ(read_back[1].prompt, "g");
  EXPECT_EQ(read_back[1].answer, "h");
}

TEST_F(ShareGptFile, GivesTheFirstHumanTurnsInPythonsOrder) {
  std::string text;
  for (int i = 0; i < 20; ++i) {
    text += (i == 0 ? "[" : ",") +
            fmt::format(R"({{"conversations": [{{"from": "system", "value": "s"}},
                         {{"from": "human", "value": " \n"}},
                         {{"from": "human", "value": "\n q{} "}}]}})",
                        i);
  }
  read(text + R"(, {"conversations": [{"from": "gpt", "value": "g"}]}, {"id": "none"}])");
  EXPECT_THAT(sharegpt_prompts(path_, 5, 42), ElementsAre("q19", "q5", "q14", "q4", "q9"));
  EXPECT_EQ(sharegpt_prompts(path_, 100, 42).size(), 20u);
}

TEST_F(ShareGptFile, RejectsOtherFormats) {
  EXPECT_THROW(read("{}"), SetupError);
  EXPECT_THROW(read("[{\"conversations\": [{\"from\": \"human\"}, {}]}]"), SetupError);
  EXPECT_THROW(read("[{\"conversations\": [1, 2]}]"), SetupError);
  EXPECT_THROW(read("[{"), SetupError);
  EXPECT_THROW(read_sharegpt("/no/such/file"), SetupError);
}

Conversation of_lengths(size_t prompt, size_t answer) {
  return {.prompt = std::string(prompt, 'p'), .answer = std::string(answer, 'a')};
}

int count_bytes(const std::string& text) { return static_cast<int>(text.size()); }

TEST(ShareGptRequests, SkipTooShortAndTooLongPairs) {
  const auto requests =
      sharegpt_requests({of_lengths(3, 10), of_lengths(10, 3), of_lengths(1025, 10),
                         of_lengths(1024, 1025), of_lengths(1024, 1024), of_lengths(4, 4)},
                        {.count = 10}, count_bytes);
  std::set<std::pair<int, int>> lengths;
  for (const LoadRequest& request : requests)
    lengths.emplace(request.prompt_tokens, request.max_tokens);
  EXPECT_THAT(lengths, ElementsAre(std::pair(4, 4), std::pair(1024, 1024)));
}

TEST(ShareGptRequests, GenerateAFixedNumberOfTokensOnRequest) {
  const auto requests =
      sharegpt_requests({of_lengths(4, 1), of_lengths(3, 9)}, {.output_tokens = 2}, count_bytes);
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].max_tokens, 2);
  EXPECT_TRUE(
      sharegpt_requests({of_lengths(1024, 9)}, {.output_tokens = 1025}, count_bytes).empty());
}

TEST(ShareGptRequests, AreDrawnWithTheSeedAndNotCountedFurtherThanNeeded) {
  std::vector<Conversation> all;
  for (size_t i = 0; i < 50; ++i) all.push_back(of_lengths(10 + i, 10));
  int counted = 0;
  const auto draw = [&](uint64_t seed) {
    std::vector<int> lengths;
    const auto requests =
        sharegpt_requests(all, {.count = 20, .seed = seed}, [&](const std::string& text) {
          ++counted;
          return count_bytes(text);
        });
    for (const LoadRequest& request : requests) lengths.push_back(request.prompt_tokens);
    return lengths;
  };
  EXPECT_EQ(draw(3).size(), 20u);
  EXPECT_EQ(counted, 40);
  EXPECT_EQ(draw(3), draw(3));
  EXPECT_NE(draw(3), draw(4));
}

}  // namespace
}  // namespace octavo::bench
