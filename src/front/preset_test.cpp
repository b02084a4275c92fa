#include "front/preset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace octavo::front {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string preset_error(std::string_view text) {
  try {
    parse_preset(text, "p.toml");
  } catch (const SetupError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Preset, ReadsModelsWithFlagsAliasesAndRules) {
  const Preset preset = parse_preset(R"(
# for every model
["*"]
max-num-seqs = 8
keep-alive = "1h"

[chat]
model = 'org/name:Q4_K_M'   # a comment
aliases = ["gpt-4o-mini",
           "small"]
preload = true
pinned = true
max-num-seqs = 16
max-model-len = 8_192
enable-prefix-caching = false
kv-share = 0.1

["org/other.gguf"]
keep-alive = -1
)",
                                     "p.toml");
  ASSERT_EQ(preset.models.size(), 2);
  const ModelPreset& chat = preset.models[0];
  EXPECT_EQ(chat.name, "chat");
  EXPECT_EQ(chat.model, "org/name:Q4_K_M");
  EXPECT_THAT(chat.aliases, ElementsAre("gpt-4o-mini", "small"));
  EXPECT_TRUE(chat.preload);
  EXPECT_TRUE(chat.pinned);
  EXPECT_THAT(chat.flags, ElementsAre("--max-num-seqs=16", "--max-model-len=8192",
                                      "--enable-prefix-caching=false"));
  EXPECT_EQ(chat.kv_share, 0.1);
  EXPECT_EQ(chat.keep_alive->time, std::chrono::hours(1));
  const ModelPreset& other = preset.models[1];
  EXPECT_EQ(other.name, "org/other.gguf");
  EXPECT_THAT(other.flags, ElementsAre("--max-num-seqs=8"));
  EXPECT_FALSE(other.keep_alive->time);
  EXPECT_THAT(preset.flags, ElementsAre("--max-num-seqs=8"));
}

TEST(Preset, SaysTheLineAndWhatToWrite) {
  EXPECT_THAT(preset_error("port = 1"), HasSubstr("line 1: port is before the first section"));
  EXPECT_THAT(preset_error("[a]\nport = 1"), HasSubstr("line 2: port is set for the whole server"));
  EXPECT_THAT(preset_error("[qwen3-0.6b]"), HasSubstr("write [\"qwen3-0.6b\"]"));
  EXPECT_THAT(preset_error("[a]\ndtype = float32"), HasSubstr("write \"float32\""));
  EXPECT_THAT(preset_error("[a]\npreload = 1"), HasSubstr("must be true or false"));
  EXPECT_THAT(preset_error("[a]\nkv-share = 1.5"), HasSubstr("at most 1"));
  EXPECT_THAT(preset_error("[a]\nkeep-alive = \"soon\""), HasSubstr("a duration"));
  EXPECT_THAT(preset_error("[a]\n[a]"), HasSubstr("[a] occurs twice"));
  EXPECT_THAT(preset_error("[a]\nx = 1\nx = 2"), HasSubstr("line 3: x occurs twice"));
  EXPECT_THAT(preset_error("[a]\nx = \"1"), HasSubstr("closing quote"));
  EXPECT_THAT(preset_error("[a]\nx = [\"1\","), HasSubstr("closing ]"));
  EXPECT_THAT(preset_error("[a]\nx"), HasSubstr("is not NAME = VALUE"));
  EXPECT_THAT(preset_error("[a]\nx = 1 2"), HasSubstr("unexpected text"));
  EXPECT_THAT(preset_error("[a"), HasSubstr("needs quotes"));
  EXPECT_THAT(preset_error("["), HasSubstr("line 1"));
  EXPECT_THAT(preset_error("[a]\nx ="), HasSubstr("a text needs quotes"));
  EXPECT_THAT(preset_error("[a]\nx = \"\\"), HasSubstr("line 2"));
}

}  // namespace
}  // namespace octavo::front
