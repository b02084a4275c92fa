#include "hub/model_name.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(ModelName, HasRepoVariantAndRevision) {
  const auto name = parse_model_name("Org/Name-1.5_B:Q4_K_M@refs/pr/3");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->repo, "Org/Name-1.5_B");
  EXPECT_EQ(name->variant, "Q4_K_M");
  EXPECT_EQ(name->revision, "refs/pr/3");
  EXPECT_EQ(name->text(), "Org/Name-1.5_B:Q4_K_M@refs/pr/3");
  EXPECT_TRUE(name->has_org());
  EXPECT_EQ(parse_model_name("Org/Name")->revision_or_main(), "main");
  EXPECT_EQ(parse_model_name("llama3.2:1b")->variant, "1b");
  EXPECT_FALSE(parse_model_name("gpt2")->has_org());
}

TEST(ModelName, TakesAddressesOfTheHub) {
  EXPECT_EQ(parse_model_name("https://huggingface.co/Org/Name")->repo, "Org/Name");
  EXPECT_EQ(parse_model_name("hf.co/Org/Name:Q8_0")->text(), "Org/Name:Q8_0");
}

TEST(ModelName, RefusesWhatCannotBeOne) {
  for (const char* text :
       {"", "/abs/path", "./here", "../up", "a/b/c", "Org/", "/Name", "Org/Name:", "Org/Name@",
        "Org/Na me", "Org/..", "Org/a..b", "Org/Name:../../x", "Org/Name@..", "-x/y", "a--b/c",
        "Org/Name:/etc/passwd", "Org/Name?x=1"}) {
    EXPECT_FALSE(parse_model_name(text)) << text;
  }
}

}  // namespace
}  // namespace octavo
