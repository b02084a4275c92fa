#include "hub/aliases.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "hub/model_name.h"

namespace octavo {
namespace {

TEST(Aliases, AreResolvedWithDashesAndWithOllamasColons) {
  EXPECT_EQ(resolve_alias("qwen3-8b"), "Qwen/Qwen3-8B-GGUF");
  EXPECT_EQ(resolve_alias("qwen3:8b"), "Qwen/Qwen3-8B-GGUF");
  EXPECT_EQ(resolve_alias("llama3.2:latest"), resolve_alias("llama3.2"));
  EXPECT_EQ(resolve_alias("nothing:latest"), "");
  EXPECT_EQ(resolve_alias(""), "");
}

TEST(Aliases, HaveDistinctNamesAndValidModels) {
  std::set<std::string_view> names;
  for (const Alias& alias : all_aliases()) {
    EXPECT_TRUE(names.insert(alias.name).second) << alias.name;
    const auto model = parse_model_name(std::string(alias.model));
    EXPECT_TRUE(model && model->has_org()) << alias.model;
  }
  EXPECT_GE(names.size(), 80U);
}

}  // namespace
}  // namespace octavo
