#include "cli/parse/foreign_environment.h"

#include <gtest/gtest.h>

#include <vector>

namespace octavo {
namespace {

std::string note_for(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return foreign_environment_note(environment.data()).value_or("none");
}

TEST(ForeignEnvironment, OneLineNamesTheFlagOfEachVariable) {
  EXPECT_EQ(note_for({"VLLM_METAL_USE_PAGED_ATTENTION=1", "HOME=/",
                      "VLLM_METAL_MEMORY_FRACTION=0.3", "VLLM_METAL_NEW=1"}),
            "variables of vllm-metal have no effect: "
            "VLLM_METAL_MEMORY_FRACTION (use --memory-fraction), "
            "VLLM_METAL_NEW (no equivalent), "
            "VLLM_METAL_USE_PAGED_ATTENTION (the KV cache is always paged)");
}

TEST(ForeignEnvironment, OtherAndEmptyVariablesAreNotReported) {
  EXPECT_EQ(note_for({}), "none");
  EXPECT_EQ(note_for({"HOME=/", "VLLM_API_KEY=x", "VLLM_METAL_MEMORY_FRACTION=", "VLLM_METAL_X"}),
            "none");
}

TEST(ForeignEnvironment, ANameWithControlCharactersIsNotRepeated) {
  EXPECT_EQ(note_for({"VLLM_METAL_\033[2J=1"}), "none");
}

}  // namespace
}  // namespace octavo
