#include "models/gguf_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "models/format/gguf.h"
#include "models/format/test_files.h"

namespace octavo {
namespace {

using test_files::gguf_string;
using test_files::le;
using testing::HasSubstr;

// Empty: it is supported.
std::string refusal(std::string_view architecture) {
  const test_files::GgufParts parts{.values = {gguf_string("general.architecture") +
                                               le(uint32_t{8}) + gguf_string(architecture)}};
  const auto file = test_files::exact(parts.file());
  try {
    check_gguf_architecture(parse_gguf(file, "m.gguf").metadata);
  } catch (const SetupError& error) {
    return error.what();
  }
  return "";
}

TEST(GgufArchitecture, ThoseWithAnOracleAreSupported) {
  for (const char* name : {"llama", "qwen2", "qwen3", "qwen3moe", "smollm3"})
    EXPECT_EQ(refusal(name), "") << name;
}

TEST(GgufArchitecture, OthersAreRefusedByName) {
  for (const char* name : {"granite", "mistral3", "gemma3", "phi3", "gpt-oss"}) {
    EXPECT_THAT(refusal(name),
                HasSubstr("m.gguf: GGUF architecture \"" + std::string(name) +
                          "\" is not supported; supported are llama, qwen2, qwen3, qwen3moe, "
                          "smollm3. Use a safetensors checkpoint"));
  }
  for (const char* name : {"falcon", "mistral", "qwen35", "Llama", ""})
    EXPECT_THAT(refusal(name), HasSubstr("is not supported")) << name;
}

}  // namespace
}  // namespace octavo
