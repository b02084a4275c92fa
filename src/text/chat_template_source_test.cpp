#include "text/chat_template_source.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace octavo {
namespace {

class ChatTemplateSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name) << text; }

  std::filesystem::path folder_;
};

TEST_F(ChatTemplateSourceTest, ReturnsNulloptWithoutATemplate) {
  EXPECT_FALSE(find_chat_template(folder_));
  write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_FALSE(find_chat_template(folder_));
}

TEST_F(ChatTemplateSourceTest, TheJinjaFileTakesPrecedence) {
  write("tokenizer_config.json",
        R"({"chat_template": "config", "eos_token": {"content": "</s>"}})");
  EXPECT_EQ(find_chat_template(folder_)->source, "config");
  write("chat_template.jinja", "file");
  const auto found = find_chat_template(folder_);
  EXPECT_EQ(found->source, "file");
  EXPECT_EQ(found->eos_token, "</s>");
  EXPECT_EQ(found->bos_token, "");
}

TEST_F(ChatTemplateSourceTest, AListHasADefaultAndAToolTemplate) {
  write(
      "tokenizer_config.json",
      R"({"chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d"},
                              {"name": "rag", "template": "r"}, 7, {"name": 1}]})");
  const auto found = find_chat_template(folder_);
  EXPECT_EQ(found->source, "d");
  EXPECT_EQ(found->tool_use_source, "t");
}

TEST_F(ChatTemplateSourceTest, TheMapFillsTokensTheConfigLacks) {
  write("tokenizer_config.json",
        R"({"chat_template": "x", "bos_token": null, "pad_token": "<p>"})");
  write("special_tokens_map.json", R"({"bos_token": {"content": "<b>"}, "pad_token": "<other>"})");
  const auto found = find_chat_template(folder_);
  EXPECT_EQ(found->bos_token, "<b>");
  EXPECT_EQ(found->pad_token, "<p>");
}

TEST_F(ChatTemplateSourceTest, ABrokenFileIsNamed) {
  write("tokenizer_config.json", "{");
  try {
    find_chat_template(folder_);
    FAIL();
  } catch (const SetupError& error) {
    EXPECT_NE(std::string(error.what()).find("tokenizer_config.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace octavo
